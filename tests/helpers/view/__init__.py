"""What a viewer of records shows, and a browser to look at it."""
