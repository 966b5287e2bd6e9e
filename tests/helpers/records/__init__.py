"""Record files of every kind, and plain models of what readers make of them."""
