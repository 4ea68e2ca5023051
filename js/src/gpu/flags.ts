// WebGPU's bit flags, as the specification numbers them: in Node they are no globals.

/** The usages of buffers. */
export const mapRead = 0x1, mapWrite = 0x2, copySrc = 0x4, copyDst = 0x8, uniform = 0x40, storage = 0x80, indirect = 0x100;
export const computeStage = 0x4;
