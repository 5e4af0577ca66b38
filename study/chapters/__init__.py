"""A folder a chapter: its tables, figures, predictions, and the numbers that its prose states."""
