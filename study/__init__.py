"""The study that makes the book: from MNIST to stored runs, tables, figures and claims."""
