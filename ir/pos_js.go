package ir

// callerPos returns an unknown position: a stripped wasm module has no line table, and the
// TypeScript builder has the caller's stack.
func callerPos() Pos { return Pos{} }
