"""Records in order: read_records and follow_records, damage, receipts, verification."""
