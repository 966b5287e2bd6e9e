"""What Dataset is made of."""
