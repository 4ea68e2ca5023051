package dtype

// Dialect is a language that kernels are printed in, or CPU, where they are
// interpreted.
type Dialect uint8

// The dialects.
const (
	WGSL Dialect = iota
	CUDA
	MSL
	CPU

	dialects
)

var dialectNames = [dialects]string{"wgsl", "cuda", "msl", "cpu"}

// String returns the dialect's name in lower case.
func (t Dialect) String() string {
	if t >= dialects {
		return "invalid"
	}
	return dialectNames[t]
}

// Support says what kernels of a dialect can do with a type.
type Support uint8

// The degrees of support, weakest first, so that they compare with <.
const (
	// Unsupported types cannot appear in a kernel at all: a graph that has
	// them is decomposed before, or refused.
	Unsupported Support = iota
	// Storage types are loaded and stored, and computed with in another type:
	// f32 for f16 and bf16, i32 or u32 for 8- and 16-bit integers, f32 for
	// packed blocks.
	Storage
	// Arithmetic types have operations of their own.
	Arithmetic
)

// String returns "unsupported", "storage" or "arithmetic".
func (s Support) String() string {
	switch s {
	case Storage:
		return "storage"
	case Arithmetic:
		return "arithmetic"
	}
	return "unsupported"
}

// support is the one table of types against targets. Columns follow the
// constants WGSL, CUDA, MSL, CPU. What a particular device lacks beyond its
// dialect (f16 needs the feature shader-f16 in WGSL) is a capability of the
// device, not of the type.
//
//   - WGSL has 32-bit types and, as a feature, f16. A bool cannot be stored, so
//     buffers hold it as u32, but it computes. Narrower types live packed in
//     words.
//   - MSL has 64-bit integers but no f64; its bfloat needs a newer language
//     version than we ask for.
//   - Complex arithmetic is decomposed into real arithmetic for the dialects
//     of C.
//   - The CPU computes f16 and bf16 in f32.
var support = [count][dialects]Support{
	Bool: {Arithmetic, Arithmetic, Arithmetic, Arithmetic},
	I8:   {Storage, Arithmetic, Arithmetic, Arithmetic},
	I16:  {Storage, Arithmetic, Arithmetic, Arithmetic},
	I32:  {Arithmetic, Arithmetic, Arithmetic, Arithmetic},
	I64:  {Unsupported, Arithmetic, Arithmetic, Arithmetic},
	U8:   {Storage, Arithmetic, Arithmetic, Arithmetic},
	U16:  {Storage, Arithmetic, Arithmetic, Arithmetic},
	U32:  {Arithmetic, Arithmetic, Arithmetic, Arithmetic},
	U64:  {Unsupported, Arithmetic, Arithmetic, Arithmetic},
	F16:  {Arithmetic, Arithmetic, Arithmetic, Storage},
	BF16: {Storage, Arithmetic, Storage, Storage},
	F32:  {Arithmetic, Arithmetic, Arithmetic, Arithmetic},
	F64:  {Unsupported, Arithmetic, Unsupported, Arithmetic},
	C64:  {Unsupported, Unsupported, Unsupported, Arithmetic},
	C128: {Unsupported, Unsupported, Unsupported, Arithmetic},

	Q8_0: {Storage, Storage, Storage, Storage},
	Q4_0: {Storage, Storage, Storage, Storage},
	Q4_1: {Storage, Storage, Storage, Storage},
	Q5_0: {Storage, Storage, Storage, Storage},
	Q5_1: {Storage, Storage, Storage, Storage},
	Q2K:  {Storage, Storage, Storage, Storage},
	Q3K:  {Storage, Storage, Storage, Storage},
	Q4K:  {Storage, Storage, Storage, Storage},
	Q5K:  {Storage, Storage, Storage, Storage},
	Q6K:  {Storage, Storage, Storage, Storage},
	Q8K:  {Storage, Storage, Storage, Storage},
}

// On returns what kernels of dialect t can do with elements of type d.
func (d DType) On(t Dialect) Support {
	if !d.Valid() || t >= dialects {
		return Unsupported
	}
	return support[d][t]
}
