"""Records as people read them: the text of each, cells and tables, and what a terminal shows."""
