"""Wrong arguments of tfwire.checksum, tfwire.sharding, tfwire.images."""

import tfwire as tfw
from tfwire import arrow, checksum, images, sharding

tfw.crc32c("text")  # error
tfw.crc32c(3)  # error
checksum.crc32c(b"", b"")  # error
checksum.masked_crc32c("text")  # error
checksum.mask_crc("42")  # error
checksum.unmask_crc(b"")  # error
checksum.combine_crc32c(1, 2)  # error
checksum.base64_crc32c("42")  # error
checksum.crc32c_kernel().nothing  # error
sharding.recommend_num_shards("1GB")  # error
sharding.recover_shards(3)  # error
images.decode("picture.png")  # error
images.decode(b"", 2)  # error
images.decode(b"", frames="all")  # error
images.crop_or_pad([[1]], 2, 2)  # error
images.crop_or_pad(images.decode(b""), "2", 2)  # error
tfw.nothing  # error
arrow.open_reader(3)  # error
arrow.open_reader("a", binary_as="utf8")  # error
arrow.open_reader("a", columns=3)  # error
arrow.open_reader("a", batch_size="1")  # error
arrow.open_reader("a", on_corrupt="ignore")  # error
