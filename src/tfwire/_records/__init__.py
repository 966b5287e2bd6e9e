"""Record files: where bytes come from and go to, and the records in them."""
