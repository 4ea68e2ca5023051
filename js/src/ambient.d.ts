// Go's own glue for WebAssembly, which defines globalThis.Go: build.mjs bundles the one of
// the Go that built the modules.
declare module '#wasm_exec';

// The hash of the compiler's module, which build.mjs substitutes.
declare const compilerBuild: string;
