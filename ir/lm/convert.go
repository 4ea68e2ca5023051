package lm

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/nn"
)

// converter reads the parameters of a decoder one by one, as f32 in the form of GGUF files:
// matrices as [out, in], and norms with NormOffset added.
type converter struct {
	*Weights
	config     Config
	f          family
	parameters []ir.Port // with the shapes that GGUF files have
}

func newConverter(c Config, t Tensors) (*converter, error) {
	w, err := Bind(c, t, BindOptions{DType: ir.F32, Unpack: true})
	if err != nil {
		return nil, err
	}
	f, _ := familyOf(c.Architecture)
	if f.gguf == "" || c.GroupedQKV || c.Architecture == "falcon" {
		return nil, ir.Errorf(ir.ErrUnsupported, "a model of %s cannot be converted: it is read alone", c.Architecture)
	}
	ports, err := c.layout(t).parameters(func(string) nn.Storage { return nn.Storage{OutIn: true} })
	return &converter{w, c, f, ports}, err
}

// floats returns a parameter.
func (c *converter) floats(p ir.Port) ([]float32, error) {
	data, err := c.Bytes(p.Name)
	if err != nil {
		return nil, err
	}
	if dims, _ := p.Value.Shape().Ints(); len(dims) == 2 && !c.of[p.Name].nn.OutIn && c.isLinear(p.Name) {
		data = permute.Axes(data, 4, []int{dims[1], dims[0]}, []int{1, 0})
	}
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, nil
}

// isLinear reports a parameter of a linear layer of a block, which GPT-2's safetensors have as [in, out].
func (c *converter) isLinear(name string) bool {
	return name != c.f.embedding+"/weight" && name != c.f.positions+"/weight" && name != c.f.head+"/weight"
}

// heads returns the number of heads in the rows of a parameter that is rotated by pairs; 0 for
// others.
func (c *converter) heads(name string) int {
	layer, _, _ := strings.Cut(strings.TrimPrefix(name[strings.Index(name, c.f.attention)+len(c.f.attention):], "/"), "/")
	switch {
	case c.config.Rope == nil || !strings.Contains(name, "/"+c.f.attention+"/"):
		return 0
	case layer == c.f.q && c.f.q != "":
		return c.config.Heads
	case layer == c.f.k && c.f.k != "":
		return c.config.KVHeads
	}
	return 0
}

// paired permutes the rows of heads from pairs half a head apart to adjacent pairs, or back if
// split is set.
func paired(x []float32, heads, rows int, split bool) []float32 {
	width, size := len(x)/rows, rows/heads
	out := make([]float32, len(x))
	for row := range rows {
		head, i := row/size, row%size
		neighbour := head*size + i%(size/2)*2 + i/(size/2)
		from, to := row, neighbour
		if split {
			from, to = neighbour, row
		}
		copy(out[to*width:][:width], x[from*width:][:width])
	}
	return out
}

// float32s writes floats.
func float32s(w io.Writer, x []float32) error {
	return binary.Write(w, binary.LittleEndian, x)
}

// lossless returns an error of kind [ir.ErrUnsupported] that names the first field of a
// configuration that changed when it was written and read back.
func lossless(written, read Config, format string) error {
	name, a, b := difference("", reflect.ValueOf(written), reflect.ValueOf(read))
	if name == "" {
		return nil
	}
	return ir.Errorf(ir.ErrUnsupported, "%s of %s cannot express that %s is %v; it would be read as %v", format, written.Architecture, name, a, b)
}

// difference returns the name of the first field in which two values differ, and both values.
// Floats may differ by their rounding to f32.
func difference(name string, a, b reflect.Value) (field string, x, y any) {
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				return name, a.Interface(), b.Interface()
			}
			return "", nil, nil
		}
		return difference(name, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			f := a.Type().Field(i).Name
			if field, x, y := difference(strings.TrimPrefix(name+"."+f, "."), a.Field(i), b.Field(i)); field != "" {
				return field, x, y
			}
		}
		return "", nil, nil
	case reflect.Slice:
		if a.Len() != b.Len() {
			return name, a.Interface(), b.Interface()
		}
		for i := range a.Len() {
			if field, x, y := difference(fmt.Sprintf("%s[%d]", name, i), a.Index(i), b.Index(i)); field != "" {
				return field, x, y
			}
		}
		return "", nil, nil
	case reflect.Float64:
		if near(a.Float(), b.Float()) {
			return "", nil, nil
		}
	default:
		if a.Interface() == b.Interface() {
			return "", nil, nil
		}
	}
	return name, a.Interface(), b.Interface()
}

func near(x, y float64) bool { return math.Abs(x-y) <= 1e-6*max(math.Abs(x), math.Abs(y)) }

// canonical returns a configuration without the fields about the layout of a file, and with defaults
// in place of zeros.
func (c Config) canonical() Config {
	c.Architecture, c.NormOffset, c.InOut = families[c.Architecture].gguf, 0, false
	if c.Windowed == nil || c.Window == 0 || !slices.Contains(c.Windowed, true) {
		all := c.Window > 0 && c.Windowed == nil
		c.Windowed = slices.Repeat([]bool{all}, c.Layers)
	}
	if !slices.Contains(c.Windowed, true) {
		c.Window = 0
	}
	if c.Scale == 0 {
		c.Scale = 1 / math.Sqrt(float64(c.HeadSize))
	}
	for _, scale := range []*float64{&c.EmbeddingScale, &c.ResidualScale, &c.LogitScale} {
		if *scale == 0 {
			*scale = 1
		}
	}
	if !slices.Contains(c.Unrotated, true) {
		c.Unrotated = nil
	}
	if c.Rope != nil {
		r := *c.Rope
		r.Interleaved = false
		if r.LocalBase == 0 {
			r.LocalBase = r.Base
		}
		if r.Amplitude == 0 {
			r.Amplitude = 1
		}
		if r.LongDivisors == nil {
			r.Original = 0
		}
		c.Rope = &r
	}
	return c
}

// scaling returns the rule of config.json that yields the divisors of a rotation, and the context
// that it extends. Files of either format store the parameters of the rule, but only the divisors
// are known here. ok is false if no rule yields them.
func (r *Rope) scaling(context int) (s ropeScaling, original int, ok bool) {
	switch {
	case r.LongDivisors != nil:
		return ropeScaling{Type: "longrope", Short: r.Divisors, LongFactor: r.LongDivisors, Attention: &r.Amplitude}, r.Original, true
	case r.Divisors == nil:
		return ropeScaling{Type: "default"}, context, r.Amplitude == 0 || r.Amplitude == 1
	}
	factor := slices.Max(r.Divisors)
	if n := math.Round(factor); near(n, factor) {
		factor = n // rounded to f32
	}
	tries := []ropeScaling{
		{Type: "linear", Factor: factor}, {Type: "llama3", Factor: factor, LowFrequency: 1, HighFrequency: 4}, {Type: "yarn", Factor: factor},
	}
	originals := []int{int(float64(context) / factor), context}
	for n := 1024; n <= 1<<18; n *= 2 {
		originals = append(originals, n)
	}
	for _, s := range tries {
		for _, original := range originals {
			try := &Rope{Base: r.Base, Size: r.Size}
			if s.apply(try, context, original) == nil && try.equals(r) {
				return s, original, true
			}
		}
	}
	return s, 0, false
}

// equals reports whether two rotations have the same divisors and amplitude.
func (r *Rope) equals(x *Rope) bool {
	one := func(a float64) float64 {
		if a == 0 {
			return 1
		}
		return a
	}
	return slices.EqualFunc(r.Divisors, x.Divisors, near) && near(one(r.Amplitude), one(x.Amplitude))
}

// listing records the types of tensors before they are written.
type listing struct {
	*gguf.File // metadata alone
	infos      map[string]gguf.Info
	floats     map[string][]float32
}

func (l listing) Info(name string) (gguf.Info, bool) {
	i, ok := l.infos[name]
	return i, ok
}

func (l listing) Floats(name string) ([]float32, error) { return l.floats[name], nil }
