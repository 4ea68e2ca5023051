package lm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// TensorInfo describes a tensor of a file.
type TensorInfo struct {
	// DType is the element type; it is not valid for packed blocks, whose type Packed is.
	DType  ir.DType
	Packed gguf.Type
	// Dims are the sizes, outermost first. Packed blocks lie along the last axis.
	Dims []int
}

// Tensors are the tensors of a file by their names: [OfGGUF], or those of package native/lm for
// safetensors.
type Tensors interface {
	Names() []string
	Info(name string) (TensorInfo, bool)
	// Bytes returns the elements as they are stored, which must not be written.
	Bytes(name string) ([]byte, error)
	// GGUF reports whether the names are those of GGUF files, not of Hugging Face's.
	GGUF() bool
}

// OfGGUF returns the tensors of a GGUF file.
func OfGGUF(f *gguf.File) Tensors { return ofGGUF{f} }

type ofGGUF struct{ *gguf.File }

func (f ofGGUF) GGUF() bool { return true }

func (f ofGGUF) Info(name string) (TensorInfo, bool) {
	i, ok := f.File.Info(name)
	return TensorInfo{i.Type.DType(), i.Type, i.Dims}, ok
}

// BindOptions are the options of [Bind].
type BindOptions struct {
	// DType converts the matrices that have numbers to a float type; the zero value leaves them as they
	// are in the file. Vectors, those of norms and biases, are always f32.
	DType ir.DType
	// Unpack converts packed matrices to floats of DType, or of f32 if that is the zero value, as
	// training them needs. Those of a type that [ops.QuantizedMatMul] does not know always are.
	Unpack bool
}

// Weights are the parameters of a decoder as they lie in a file. They may be used by several goroutines.
type Weights struct {
	config  Config
	tensors Tensors
	of      map[string]source
}

// source is the tensor of a file that a parameter is read from.
type source struct {
	name   string
	info   TensorInfo
	nn     nn.Storage
	t      ir.Type // of the parameter
	expert int     // the part of the first axis that it is; −1 for all
	offset float64 // added to it
}

// Bind finds the parameters of a decoder in a file. The error is of kind [ir.ErrName] for parameters that
// the file lacks and for tensors of the file that are none, with the nearest names, [ir.ErrShape] for
// one of another shape, [ir.ErrDType] for elements that are no floats, and otherwise those of
// [Config.Check].
func Bind(c Config, t Tensors, o ...BindOptions) (*Weights, error) {
	var opts BindOptions
	if len(o) > 0 {
		opts = o[0]
	}
	logical, err := c.parameters(func(string) nn.Storage { return nn.Storage{OutIn: true} })
	if err != nil {
		return nil, err
	}
	w := &Weights{config: c, tensors: t, of: map[string]source{}}
	find := w.finder()
	var missing []string
	used := map[string]bool{}
	for _, p := range logical {
		s, ok := find(p.Name)
		if !ok {
			missing = append(missing, p.Name)
			continue
		}
		used[s.name] = true
		if err := s.fit(c, t, p, opts); err != nil {
			return nil, err
		}
		w.of[p.Name] = s
	}
	if err := w.complete(missing, used); err != nil {
		return nil, err
	}
	return w, w.types()
}

// parameters returns the parameters of a decoder.
func (c Config) parameters(by func(name string) nn.Storage) ([]ir.Port, error) {
	g, err := ir.Build("parameters", func(b *ir.Builder) {
		nn.Infer(b)
		nn.Stored(b, by, func() {
			b.Output("logits", Decoder(b, c, b.Input("tokens", ir.I32, ir.Dims(1, 1)...)))
		})
	})
	if err != nil {
		return nil, err
	}
	var all []ir.Port
	for _, p := range g.Ports() {
		if p.Kind == ir.ParamPort {
			all = append(all, p)
		}
	}
	return all, nil
}

// finder returns a function from the name of a parameter to its tensor in the file.
func (w *Weights) finder() func(parameter string) (source, bool) {
	family, _ := familyOf(w.config.Architecture)
	if w.tensors.GGUF() {
		layers := family.inGGUF(w.config)
		return func(parameter string) (source, bool) {
			at := strings.LastIndexByte(parameter, '/')
			s, ok := layers[parameter[:max(at, 0)]]
			found := source{name: s.name + "." + parameter[at+1:], expert: s.expert}
			if ok {
				found.info, ok = w.tensors.Info(found.name)
			}
			return found, ok
		}
	}
	return func(parameter string) (source, bool) {
		dotted := strings.ReplaceAll(parameter, "/", ".")
		_, short, _ := strings.Cut(dotted, ".")
		for _, name := range []string{dotted, short, "language_model." + dotted, "model.language_model." + short} {
			if info, ok := w.tensors.Info(name); ok {
				return source{name: name, info: info, expert: -1}, true
			}
		}
		return source{}, false
	}
}

// fit checks the tensor of a parameter p and decides its layout in memory.
func (s *source) fit(c Config, t Tensors, p ir.Port, o BindOptions) error {
	matrix := p.Value.Rank() == 2
	dims, _ := p.Value.Shape().Ints()
	want := dims
	f := c.tables()
	positions := p.Name == f.positions+"/weight"
	inOut := c.InOut && matrix && !t.GGUF() && !positions && p.Name != f.embedding+"/weight" && p.Name != f.head+"/weight"
	if inOut {
		want = []int{dims[1], dims[0]}
	}
	if s.expert >= 0 {
		want = append([]int{c.Experts}, want...)
	}
	if !slices.Equal(s.info.Dims, want) {
		return ir.Shapef("tensor %q is %v: it must be %v, for parameter %q", s.name, s.info.Dims, want, p.Name)
	}
	if d := s.info.DType; d.Valid() && !d.IsFloat() {
		return ir.DTypef("tensor %q is %s: it must have floats", s.name, d)
	}
	switch {
	case !matrix:
		s.nn.DType = ir.F32
		if strings.Contains(p.Name, "norm") {
			s.offset = c.NormOffset
		}
		if t.GGUF() {
			s.offset = 0
		}
	case s.info.DType.Valid():
		s.nn = nn.Storage{OutIn: !inOut, DType: s.info.DType}
		if o.DType.Valid() {
			s.nn.DType = o.DType
		}
	default:
		s.nn = nn.Storage{OutIn: true, Format: s.info.Packed.String()}
		if _, _, known := ops.PackedBlock(s.nn.Format); !known || o.Unpack || positions {
			s.nn.Format, s.nn.DType = "", ir.F32
			if o.DType.Valid() {
				s.nn.DType = o.DType
			}
		}
	}
	return nil
}

func (c Config) tables() names { return families[c.Architecture].names }

// complete reports parameters without a tensor, and tensors that are no parameters.
func (w *Weights) complete(missing []string, used map[string]bool) error {
	var unused []string
	for _, name := range w.tensors.Names() {
		if !used[name] && !w.needless(name) {
			unused = append(unused, name)
		}
	}
	if len(missing) > 0 {
		return ir.Errorf(ir.ErrName, "the file lacks %s", listed(missing, unused))
	}
	if len(unused) > 0 {
		return ir.Errorf(ir.ErrName, "the file has %s, which are no parameters of %s", listed(unused, missing), w.config.Architecture)
	}
	return nil
}

// needless reports whether a tensor follows from the configuration, and so is no parameter: tables of
// angles and masks, and the weight of the logits where it is tied.
func (w *Weights) needless(name string) bool {
	for _, end := range []string{".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias"} {
		if strings.HasSuffix(name, end) && !w.tensors.GGUF() {
			return true
		}
	}
	for _, start := range []string{"rope_freqs.", "rope_factors_"} {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	for _, start := range []string{"vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector."} {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return w.config.Tied && (name == "lm_head.weight" || name == "language_model.lm_head.weight")
}

// listed quotes the first few names, each with the nearest one of others.
func listed(list, others []string) string {
	const most = 5
	var parts []string
	for i, name := range list {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d more", len(list)-most))
			break
		}
		part := fmt.Sprintf("%q", name)
		if near := nearest(name, others); near != "" {
			part += fmt.Sprintf(" (the nearest is %q)", near)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// nearest returns the name that shares most with another: the longest common start and end.
func nearest(name string, others []string) (best string) {
	dotted, most := strings.ReplaceAll(name, "/", "."), 0
	for _, other := range others {
		o := strings.ReplaceAll(other, "/", ".")
		start := 0
		for start < min(len(o), len(dotted)) && o[start] == dotted[start] {
			start++
		}
		end := 0
		for end < min(len(o), len(dotted))-start && o[len(o)-1-end] == dotted[len(dotted)-1-end] {
			end++
		}
		if start+end > most {
			best, most = other, start+end
		}
	}
	return best
}

// types sets the types of the parameters as they will be declared.
func (w *Weights) types() error {
	declared, err := w.config.parameters(w.Storage)
	if err != nil {
		return err
	}
	for _, p := range declared {
		s := w.of[p.Name]
		s.t = p.Value.Type()
		w.of[p.Name] = s
	}
	return nil
}

// Storage says how a parameter lies in memory: the argument of [nn.Stored]. It is the zero value for an
// unknown name.
func (w *Weights) Storage(name string) nn.Storage { return w.of[name].nn }

// Names returns the names of the parameters, sorted.
func (w *Weights) Names() []string { return slices.Sorted(maps.Keys(w.of)) }

// Type returns the type of a parameter; false for an unknown name.
func (w *Weights) Type(name string) (ir.Type, bool) {
	s, ok := w.of[name]
	return s.t, ok
}

// Bytes returns the elements of a parameter, row-major and little endian: a window of the file where it is
// stored as it is in memory, which must not be written. The error is of kind [ir.ErrName] for an unknown
// name, and those of the file.
func (w *Weights) Bytes(name string) ([]byte, error) {
	s, ok := w.of[name]
	if !ok {
		return nil, ir.Errorf(ir.ErrName, "%q is no parameter of the model", name)
	}
	data, err := w.tensors.Bytes(s.name)
	if err != nil {
		return nil, err
	}
	if s.expert >= 0 {
		n := len(data) / w.config.Experts
		data = data[s.expert*n:][:n]
	}
	if s.nn.Format != "" || s.info.DType == s.t.DType && s.offset == 0 {
		return data, nil
	}
	return s.converted(data)
}

// converted returns a tensor's elements as those of the parameter.
func (s source) converted(data []byte) ([]byte, error) {
	a := &ir.Array{}
	if s.info.DType.Valid() {
		var err error
		if a, err = ir.ArrayOf(ir.Type{DType: s.info.DType, Shape: s.t.Shape}, data); err != nil {
			return nil, err
		}
	} else {
		dims, _ := s.t.Shape.Ints()
		*a = *ir.NewArray(ir.F32, dims...)
		floats := make([]float32, len(a.F))
		if err := gguf.Dequantize(s.info.Packed, floats, data); err != nil {
			return nil, err
		}
		for i, x := range floats {
			a.F[i] = float64(x)
		}
	}
	for i := range a.F {
		a.F[i] += s.offset
	}
	a.DType = s.t.DType
	a.Round()
	return a.Bytes(), nil
}
