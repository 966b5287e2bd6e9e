"""Arguments of every public function: right ones, and ones that change or lie."""
