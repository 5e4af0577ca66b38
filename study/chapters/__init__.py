"""A folder for each chapter: its tables, figures, predictions, and the numbers in its prose.

The ``__init__.py`` of a folder offers the names that its page uses. What every page needs is in
`study.chapters.page`.
"""
