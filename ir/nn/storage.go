package nn

import (
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/ops"
)

// Storage is the storage of the weight of a [Linear] or an [Embedding], or of the weights of a [GroupedLinear] or of the experts of
// a [MoE], which have a Format and ActivationBits alone: see [Stored]. The zero value is the layer's default.
type Storage struct {
	// Format is the format in which rows are packed, one of [ops.QuantizedMatMul]: "q4_0". The
	// parameter is then u8 [out, bytes], [rows, bytes] of an embedding or [experts, out, bytes], and frozen. "" means
	// numbers.
	Format string
	// OutIn has the weight of a linear layer as [out, in], as PyTorch and GGUF files have it. Packed
	// weights always are.
	OutIn bool
	// DType is the element type of numbers; the zero value means that of the layer's input, or
	// of an embedding's result. They are converted where they are used.
	DType ir.DType
	// ActivationBits 8 rounds what a packed weight is multiplied with to 8 bits, as
	// [ops.QuantizedMatMul8] does; 0 does not.
	ActivationBits int
}

// Stored calls f, in which by says how each weight of a [Linear], a [GroupedLinear], an [Embedding] or the experts of a [MoE] lies in memory,
// those of other layers' linear layers included. by gets the full name of the parameter:
// "layers/0/linear1/weight", "moe/experts/w1". Errors are recorded in b: of kind [ir.ErrGraph] if by or f is nil, and those
// of the layers, of kind [ir.ErrAttr] for an unknown format and [ir.ErrShape] for rows that are no
// whole blocks.
func Stored(b *ir.Builder, by func(name string) Storage, f func()) {
	const op ir.Op = "nn.stored"
	if b.Require(op, "function", by != nil) && b.Require(op, "function", f != nil) {
		during(b, func(c *context) { c.stored = by }, f)
	}
}

// StorageOf returns what the function of [Stored] returns for the parameter of a name in the open scope: the zero value without one.
func StorageOf(b *ir.Builder, name string) Storage { return (&layer{Builder: b}).storage(name) }

// weight is the weight of a layer as it lies in memory.
type weight struct {
	value ir.Value
	Storage
}

// storage returns how the parameter of a name in the open scope lies in memory.
func (l *layer) storage(name string) (s Storage) {
	if by := contextOf(l.Builder).stored; by != nil {
		s = by(l.full(name))
	}
	return s
}

// full returns the name of a parameter with the open scope.
func (l *layer) full(name string) string {
	if scope := l.ScopeName(); scope != "" {
		return scope + "/" + name
	}
	return name
}

// stored declares the weight of a layer: rows are the outputs of a linear layer, or the entries of a
// table. d is the element type that it has by default.
func (l *layer) stored(o ir.PortOptions, d ir.DType, rows, columns int, table bool) weight {
	const name = "weight"
	w := weight{Storage: l.storage(name)}
	if w.DType.Valid() {
		d = w.DType
	}
	o.Frozen = o.Frozen || contextOf(l.Builder).frozen
	if !l.knownBits(w.Storage) {
		return w
	}
	switch {
	case w.Format != "":
		w.value = l.packed(name, w.Format, rows, columns)
	case w.OutIn || table:
		w.value = l.paramOf(name, o, d, rows, columns)
	default:
		w.value = l.paramOf(name, o, d, columns, rows)
	}
	return w
}

// knownBits records an error for an unknown number of bits.
func (l *layer) knownBits(s Storage) bool {
	return l.require(s.ActivationBits == 0 || s.ActivationBits == 8, "ActivationBits is %d: it must be 0 or 8", s.ActivationBits)
}

// packed declares a frozen parameter of packed rows; the last of dims is their number of elements.
func (l *layer) packed(name, format string, dims ...int) ir.Value {
	elements, bytes, ok := ops.PackedBlock(format)
	if !l.require(ok, "Format is %q: it must be one of those of quantized_matmul", format) {
		return ir.Value{}
	}
	last := len(dims) - 1
	if dims[last]%elements != 0 {
		l.fail(ir.Shapef("rows have %d elements: %s needs whole blocks of %d", dims[last], format, elements))
		return ir.Value{}
	}
	dims[last] = dims[last] / elements * bytes
	return l.paramOf(name, ir.PortOptions{Frozen: true}, ir.U8, dims...)
}

// tied returns the weight of an earlier layer by its full name, as rows.
func (l *layer) tied(name string) weight {
	w := weight{value: Tie(l.Builder, name)}
	if by := contextOf(l.Builder).stored; by != nil {
		w.Storage = by(name)
	}
	w.OutIn = true
	return w
}

// times returns x·weight, [..., out].
func (w weight) times(b *ir.Builder, x ir.Value) ir.Value {
	switch {
	case w.Format != "" && w.ActivationBits != 0:
		return ops.QuantizedMatMul8(b, x, w.value, w.Format)
	case w.Format != "":
		return ops.QuantizedMatMul(b, x, w.value, w.Format)
	}
	return ops.Linear(b, x, w.matrix(b, x.DType()), ir.Value{})
}

// matrix returns numbers as [in, out], of type d.
func (w weight) matrix(b *ir.Builder, d ir.DType) ir.Value {
	m := w.value
	if w.OutIn {
		m = ops.Transpose(b, m, 1, 0)
	}
	return ops.Convert(b, m, d)
}

// rows returns the rows of a table at ids, of type d.
func (w weight) rows(b *ir.Builder, ids ir.Value, d ir.DType, look func(b *ir.Builder, table, ids ir.Value) ir.Value) ir.Value {
	if w.Format != "" {
		ids = ops.CheckIndex(b, ids, w.value.Dim(0), "embedding index")
		return ops.Dequantize(b, ops.Take(b, w.value, ids, 0, ops.OutsideClip), w.Format, d)
	}
	return ops.Convert(b, look(b, w.value, ids), d)
}
