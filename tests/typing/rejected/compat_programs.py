"""What tfwire.compat refuses before a program runs."""

import tfwire.compat as tf

tf.FixedLenFeature([])  # error
tf.cast()  # error
tf.constant([1]).dtype.nothing  # error
tf.TFRecordOptions("BZIP2")  # error
