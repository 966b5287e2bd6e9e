/* SPDX-License-Identifier: Apache-2.0 */
/* Template: a kernel, by the functions of the header that was included before it. */
#define KERNEL_TEXT(kernel) #kernel
#define KERNEL_NAME(kernel) KERNEL_TEXT(kernel)

TARGET static uint32_t kernel_crc(uint32_t crc, const void *data, size_t len) {
    return ~crc_bytes(~crc, data, len);
}

TARGET static uint32_t kernel_crc8(const void *data) {
    return ~crc_word(UINT32_MAX, tfwi_load64(data));
}

const tfwi_crc32c_kernel kernel_of_name = {
    .name = KERNEL_NAME(KERNEL),
    .features = FEATURES,
    .crc = kernel_crc,
    .crc8 = kernel_crc8,
    .multiply = multiply_mod,
};
