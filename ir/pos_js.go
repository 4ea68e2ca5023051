package ir

// callerPos is unknown in the browser: a stripped wasm module has no line
// table, and the TypeScript builder has the caller's stack anyway.
func callerPos() Pos { return Pos{} }
