// WebGPU's bit flags that pictures need, as the specification numbers them. They are not those of gpu/flags.ts, which would then be
// exports of the code that every page loads.

/** The usages of buffers. */
export const mapRead = 0x1, copySrc = 0x4, copyDst = 0x8, storage = 0x80;
/** The usages of textures. */
export const textureCopyDst = 0x2, textureBinding = 0x4, storageBinding = 0x8, renderAttachment = 0x10;
