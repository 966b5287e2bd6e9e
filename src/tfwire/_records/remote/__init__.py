"""Objects of remote stores, through fsspec: their versions, ranges of their bytes, uploads."""
