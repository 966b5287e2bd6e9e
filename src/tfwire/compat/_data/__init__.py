"""``tf.data``: datasets whose elements are tensors."""
