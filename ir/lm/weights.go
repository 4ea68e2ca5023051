package lm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/nearest"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/ir/ops"
)

// TensorInfo describes a tensor of a file.
type TensorInfo struct {
	// DType is the element type; it is not valid for packed blocks, whose type is Packed.
	DType  ir.DType
	Packed gguf.Type
	// Dims are the sizes, outermost first. Blocks are packed along the last axis.
	Dims []int
}

// Tensors are the tensors of a file by their names: [OfGGUF], or those of package native/lm for
// safetensors.
type Tensors interface {
	Names() []string
	Info(name string) (TensorInfo, bool)
	// Bytes returns the stored elements. The caller must not modify them.
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
	// DType converts unpacked matrices to a float type; the zero value keeps their stored type.
	// Vectors, those of norms and biases, are always f32.
	DType ir.DType
	// Unpack converts packed matrices to floats of DType, or of f32 if that is the zero value, as
	// training them requires. Matrices of types that [ops.QuantizedMatMul] does not support are
	// always unpacked.
	Unpack bool
	// ActivationBits 8 rounds what packed matrices are multiplied with to 8 bits in blocks of 32, as llama.cpp does
	// ([nn.Storage]); the zero value does not.
	ActivationBits int
}

// Weights are the parameters of a model in a file. They may be used by several goroutines.
type Weights struct {
	layout  Layout
	tensors Tensors
	of      map[string]source
}

// Layout describes a model to [BindLayout]: the parameters that it declares, and the tensors of a
// file that hold them. [Bind] is for decoders.
type Layout struct {
	// Architecture names the model in errors.
	Architecture string
	// Declare adds the model to a graph, with an output.
	Declare func(b *ir.Builder)
	// Names returns the possible names of a parameter's tensor in a file, in order of preference.
	// nil means Hugging Face's names: those of the parameters with a dot for each slash, also
	// without the first part.
	Names func(parameter string) []string
	// Needless reports whether a tensor that is no parameter is ignored; nil means that none is.
	Needless func(tensor string) bool

	// place returns more about the tensor of a parameter; nil means nothing.
	place func(p ir.Port, s *source)
}

// source is the tensor of a file that a parameter is read from.
type source struct {
	name    string
	info    TensorInfo
	nn      nn.Storage
	t       ir.Type // of the parameter
	experts int     // number of experts along the first axis, if the parameter is one of them; 0 for the whole tensor
	expert  int
	all     string  // the parameter of all experts
	offset  float64 // added to it
	inOut   bool    // the matrix is stored as [in, out]
	unpack  bool    // blocks are unpacked, as the layer has no packed table
}

// Bind finds the parameters of a decoder in a file. The error is of kind [ir.ErrName] for missing
// parameters and for tensors that are no parameters, with the nearest names, [ir.ErrShape] for
// another shape, and [ir.ErrDType] for elements that are no floats. Other errors are those of
// [Config.Check].
func Bind(c Config, t Tensors, o ...BindOptions) (*Weights, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	return BindLayout(c.layout(t), t, o...)
}

// BindLayout finds the parameters of any model in a file. A tensor has the shape of its parameter, but for
// axes of size 1 and, where the parameter is a matrix, the axes after its first, which are one: the weight
// of a convolution of patches is a matrix. Errors are those of [Bind] and of Declare.
func BindLayout(l Layout, t Tensors, o ...BindOptions) (*Weights, error) {
	var opts BindOptions
	if len(o) > 0 {
		opts = o[0]
	}
	if l.Declare == nil {
		return nil, ir.Errorf(ir.ErrGraph, "the layout of %s has no Declare", l.Architecture)
	}
	logical, err := l.parameters(func(string) nn.Storage { return nn.Storage{OutIn: true} })
	if err != nil {
		return nil, err
	}
	w := &Weights{layout: l, tensors: t, of: map[string]source{}}
	var missing []string
	used := map[string]bool{}
	for _, p := range logical {
		s, ok := w.find(p)
		if !ok {
			missing = append(missing, p.Name)
			continue
		}
		used[s.name] = true
		if err := s.fit(p, opts); err != nil {
			return nil, err
		}
		w.of[p.Name] = s
	}
	if err := w.complete(missing, used); err != nil {
		return nil, err
	}
	w.joinExperts()
	return w, w.types()
}

// joinExperts replaces the parameters of experts by those of all experts of a layer, if all of them stay packed.
func (w *Weights) joinExperts() {
	for _, s := range w.of {
		if s.experts > 0 && s.nn.Format == "" {
			return
		}
	}
	for name, s := range w.of {
		if s.experts > 0 {
			delete(w.of, name)
			s.experts = 0
			w.of[s.all] = s
		}
	}
}

// parameters returns the parameters of a model.
func (l Layout) parameters(by func(name string) nn.Storage) ([]ir.Port, error) {
	g, err := ir.Build("parameters", func(b *ir.Builder) {
		nn.Infer(b)
		nn.Stored(b, by, func() { l.Declare(b) })
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

// layout returns the layout of a decoder.
func (c Config) layout(t Tensors) Layout {
	family, _ := familyOf(c.Architecture)
	l := Layout{
		Architecture: c.Architecture,
		Declare:      func(b *ir.Builder) { b.Output("logits", Decoder(b, c, b.Input("tokens", ir.I32, ir.Dims(1, 1)...))) },
		Names: func(parameter string) []string {
			names := hfNames(parameter)
			return append(names, "language_model."+names[0], "model.language_model."+names[1])
		},
		Needless: c.needless(t.GGUF()),
	}
	l.place = func(p ir.Port, s *source) {
		s.unpack = p.Name == family.positions+"/weight"
		s.inOut = c.InOut && !t.GGUF() && !s.unpack && p.Name != family.embedding+"/weight" && p.Name != family.head+"/weight"
		if isNormWeight(p.Name) && !t.GGUF() {
			s.offset = c.NormOffset
		}
	}
	if t.GGUF() {
		layers := family.inGGUF(c)
		l.Names = func(parameter string) []string {
			at := strings.LastIndexByte(parameter, '/')
			return []string{layers[parameter[:max(at, 0)]].name + "." + parameter[at+1:]}
		}
		place := l.place
		l.place = func(p ir.Port, s *source) {
			place(p, s)
			at := max(strings.LastIndexByte(p.Name, '/'), 0)
			if in := layers[p.Name[:at]]; in.expert >= 0 {
				s.expert, s.experts, s.all = in.expert, c.Experts, in.all+p.Name[at:]
			}
		}
	}
	return l
}

// isNormWeight reports whether a parameter of a family with a NormOffset is the weight of a norm.
func isNormWeight(parameter string) bool {
	return strings.Contains(parameter, "norm") && strings.HasSuffix(parameter, "/weight")
}

// hfNames returns the name of a parameter in files of Hugging Face, whole and without its first part.
func hfNames(parameter string) []string {
	dotted := strings.ReplaceAll(parameter, "/", ".")
	_, short, _ := strings.Cut(dotted, ".")
	return []string{dotted, short}
}

// find returns the tensor of a parameter in the file.
func (w *Weights) find(p ir.Port) (source, bool) {
	names := w.layout.Names
	if names == nil {
		names = hfNames
	}
	for _, name := range names(p.Name) {
		if info, ok := w.tensors.Info(name); ok {
			s := source{name: name, info: info}
			if w.layout.place != nil {
				w.layout.place(p, &s)
			}
			return s, true
		}
	}
	return source{}, false
}

// fit checks the tensor of a parameter p and decides its layout in memory.
func (s *source) fit(p ir.Port, o BindOptions) error {
	matrix := p.Value.Rank() == 2
	s.inOut = s.inOut && matrix
	dims, _ := p.Value.Shape().Ints()
	want := dims
	if s.inOut {
		want = []int{dims[1], dims[0]}
	}
	if s.experts > 0 {
		want = append([]int{s.experts}, want...)
	}
	if !slices.Equal(s.info.Dims, want) && !slices.Equal(merged(s.info.Dims, len(want)), merged(want, len(want))) {
		return ir.Shapef("tensor %q is %v: it must be %v, for parameter %q", s.name, s.info.Dims, want, p.Name)
	}
	if d := s.info.DType; d.Valid() && !d.IsFloat() {
		return ir.DTypef("tensor %q is %s: it must have floats", s.name, d)
	}
	switch {
	case !matrix:
		s.nn.DType = ir.F32
	case s.info.DType.Valid():
		s.nn = nn.Storage{OutIn: !s.inOut, DType: s.info.DType}
		if o.DType.Valid() {
			s.nn.DType = o.DType
		}
	default:
		s.nn = nn.Storage{OutIn: true, Format: s.info.Packed.String(), ActivationBits: o.ActivationBits}
		if _, _, known := ops.PackedBlock(s.nn.Format); !known || o.Unpack || s.unpack {
			s.nn.Format, s.nn.ActivationBits, s.nn.DType = "", 0, ir.F32
			if o.DType.Valid() {
				s.nn.DType = o.DType
			}
		}
	}
	return nil
}

// merged returns sizes without those of 1, and for a matrix with those after the first multiplied.
func merged(dims []int, rank int) (out []int) {
	for _, d := range dims {
		if d != 1 {
			out = append(out, d)
		}
	}
	if rank == 2 && len(out) > 2 {
		product := 1
		for _, d := range out[1:] {
			if d <= 0 || product > maxTokens {
				return dims // which no parameter has
			}
			product *= d
		}
		out = []int{out[0], product}
	}
	return out
}

// complete reports parameters without a tensor, and tensors that are no parameters.
func (w *Weights) complete(missing []string, used map[string]bool) error {
	var unused []string
	for _, name := range w.tensors.Names() {
		if !used[name] && (w.layout.Needless == nil || !w.layout.Needless(name)) {
			unused = append(unused, name)
		}
	}
	if len(missing) > 0 {
		return ir.Errorf(ir.ErrName, "the file lacks %s", listed(missing, unused))
	}
	if len(unused) > 0 {
		return ir.Errorf(ir.ErrName, "the file has %s, which are no parameters of %s", listed(unused, missing), w.layout.Architecture)
	}
	return nil
}

// needless returns the tensors of a file that are ignored. They follow from the configuration
// (tables of angles, masks, tied logits), or belong to the image part of a model.
func (c Config) needless(inGGUF bool) func(name string) bool {
	starts := []string{"rope_freqs.", "rope_factors_", "vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector."}
	var ends []string
	if !inGGUF {
		ends = []string{".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias", ".attention.bias", ".attention.masked_bias"}
	}
	return func(name string) bool {
		return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) }) ||
			slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(name, start) }) ||
			c.Tied && (name == "lm_head.weight" || name == "language_model.lm_head.weight")
	}
}

// listed quotes the first few names, each with the nearest one of others.
func listed(list, others []string) string {
	const maxListed = 5
	var parts []string
	for i, name := range list {
		if i == maxListed {
			parts = append(parts, fmt.Sprintf("%d more", len(list)-maxListed))
			break
		}
		part := fmt.Sprintf("%q", name)
		if near := nearest.Name(name, others); near != "" {
			part += fmt.Sprintf(" (the nearest is %q)", near)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// types sets the types of the parameters as they will be declared.
func (w *Weights) types() error {
	declared, err := w.layout.parameters(w.Storage)
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

// Storage returns the storage of a parameter, for [nn.Stored]. It is the zero value for an unknown
// name.
func (w *Weights) Storage(name string) nn.Storage { return w.of[name].nn }

// Names returns the names of the parameters, sorted.
func (w *Weights) Names() []string { return slices.Sorted(maps.Keys(w.of)) }

// Type returns the type of a parameter; false for an unknown name.
func (w *Weights) Type(name string) (ir.Type, bool) {
	s, ok := w.of[name]
	return s.t, ok
}

// Bytes returns the elements of a parameter, row-major and little endian: a read-only window of the
// file if they need no conversion. The error is of kind [ir.ErrName] for an unknown name, and those
// of the file.
func (w *Weights) Bytes(name string) ([]byte, error) {
	if w == nil {
		return nil, ir.Attrf("the weights are nil: they must be from Bind")
	}
	s, ok := w.of[name]
	if !ok {
		return nil, ir.Errorf(ir.ErrName, "%q is no parameter of the model", name)
	}
	data, err := w.tensors.Bytes(s.name)
	if err != nil {
		return nil, err
	}
	if s.experts > 0 {
		n := len(data) / s.experts
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
