/** Modules without large kernels, or with few: lavapipe takes seconds to compile one with tiles. */
export const isLight = ({ name, bytes }) => bytes <= 32 << 10 && !name.startsWith('model ');
