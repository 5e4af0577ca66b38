"""How numbers and tables are printed, and pictures that more than one chapter shows."""
