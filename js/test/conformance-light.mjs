/** Models that train or keep states, in kernels of usual size: not that of attention in blocks, which SwiftShader takes longest to compile. */
export const isModel = ({ name, bytes }) => name.startsWith('model ') && bytes <= 32 << 10;

/** Modules without large kernels, or with few: lavapipe takes seconds to compile one with tiles. */
export const isLight = ({ name, bytes }) => bytes <= 32 << 10 && !name.startsWith('model ');

/** Modules with dispatches in two dimensions, of which the suite has few. */
export const isPlane = ({ name }) => name.startsWith('cached_attention');
