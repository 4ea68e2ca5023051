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
	WASM

	dialects
)

var dialectNames = [dialects]string{"wgsl", "cuda", "msl", "cpu", "wasm"}

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
	// them is refused. Complex ones may be computed by their parts.
	Unsupported Support = iota
	// Storage types are loaded and stored, and computed with in another type, f32
	// for floats, i32 and u32 for integers, the result of each operation being
	// rounded or wrapped to the type.
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

// support is the one table of types against targets: plans refuse what it does
// not list, kernels are widened where it says so, and printers print no type that
// it does not promise. Columns follow
// the constants WGSL, CUDA, MSL, CPU, WASM. What a particular device lacks beyond its
// dialect (f16 needs the feature shader-f16 in WGSL) is a capability of the
// device, not of the type.
//
//   - WGSL has 32-bit types and, as a feature, f16, which is stored only where a
//     device lacks it. A bool cannot be stored, so buffers hold it as u32, but it
//     computes. Narrower types lie in words.
//   - In CUDA C++ types of 8 and 16 bits are stored as such. So they are in MSL, where
//     f16 computes too; it has no f64, and bf16 of its own from version 3.1 on only.
//   - No dialect of C has complex numbers.
//   - The CPU computes f16 and bf16 in f32; the 8-bit floats are converted only.
//   - WebAssembly has numbers of 32 and 64 bits, computes bools as i32, and loads
//     and stores bytes and pairs of them.
//   - Packed blocks are nowhere yet.
var support = [count][dialects]Support{
	Bool:   {Arithmetic, Arithmetic, Arithmetic, Arithmetic, Arithmetic},
	I8:     {Storage, Storage, Storage, Arithmetic, Storage},
	I16:    {Storage, Storage, Storage, Arithmetic, Storage},
	I32:    {Arithmetic, Arithmetic, Arithmetic, Arithmetic, Arithmetic},
	I64:    {Unsupported, Arithmetic, Arithmetic, Arithmetic, Arithmetic},
	U8:     {Storage, Storage, Storage, Arithmetic, Storage},
	U16:    {Storage, Storage, Storage, Arithmetic, Storage},
	U32:    {Arithmetic, Arithmetic, Arithmetic, Arithmetic, Arithmetic},
	U64:    {Unsupported, Arithmetic, Arithmetic, Arithmetic, Arithmetic},
	F8E4M3: {Storage, Storage, Storage, Storage, Storage},
	F8E5M2: {Storage, Storage, Storage, Storage, Storage},
	F16:    {Arithmetic, Storage, Arithmetic, Storage, Storage},
	BF16:   {Storage, Storage, Storage, Storage, Storage},
	F32:    {Arithmetic, Arithmetic, Arithmetic, Arithmetic, Arithmetic},
	F64:    {Unsupported, Arithmetic, Unsupported, Arithmetic, Arithmetic},
	C64:    {Unsupported, Unsupported, Unsupported, Arithmetic, Unsupported},
	C128:   {Unsupported, Unsupported, Unsupported, Arithmetic, Unsupported},
}

// On returns what kernels of dialect t can do with elements of type d.
func (d DType) On(t Dialect) Support {
	if !d.Valid() || t >= dialects {
		return Unsupported
	}
	return support[d][t]
}
