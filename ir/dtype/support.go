package dtype

// Dialect is a kernel language, or CPU for interpreted kernels.
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

// Support says how kernels of a dialect can use an element type.
type Support uint8

// The levels of support, weakest first, so that they compare with <.
const (
	// Unsupported types cannot appear in a kernel: a graph that has them is rejected. Complex ones
	// may be computed by their parts.
	Unsupported Support = iota
	// Storage types are loaded and stored. Kernels compute in a wider type, f32 for floats and i32
	// or u32 for integers, and round or wrap the result of each operation to the type.
	Storage
	// Arithmetic types have native operations.
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

// support is the only table of element types by target: plans reject types that it does not list,
// kernels widen types that it lists as storage, and printers print only types that it supports. The
// columns are in the order of the constants WGSL, CUDA, MSL, CPU, WASM. Features of a particular
// device (f16 in WGSL needs shader-f16) are capabilities of the device, not of the type.
//
//   - WGSL has 32-bit types and, as a feature, f16, which is only stored on devices without it. A bool computes, but buffers hold it as
//     u32. Narrower types are packed into words.
//   - CUDA C++ stores types of 8 and 16 bits. So does MSL, which also computes f16; it has no f64, and bf16 only from version 3.1 on.
//   - No C dialect has complex numbers.
//   - The CPU computes f16 and bf16 in f32; the 8-bit floats are only converted.
//   - WebAssembly has numbers of 32 and 64 bits, computes bools as i32, and loads and stores 8-bit and 16-bit values.
//   - Packed blocks are not supported yet.
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
