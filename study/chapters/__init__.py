"""A folder a chapter: its tables, figures, predictions, and the numbers that its prose states.

A folder offers by name what its page uses. What every page needs is in `study.chapters.page`.
"""
