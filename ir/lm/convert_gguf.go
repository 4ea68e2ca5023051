package lm

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
)

// GGUFOptions are the options of [ToGGUF].
type GGUFOptions struct {
	// Name is general.name in the metadata.
	Name string
	// Metadata are more keys, as those of a tokenizer.
	Metadata []gguf.Pair
	// Type chooses the type of a matrix in the file, given its name, sizes and stored type; nil
	// keeps the stored type, or f32 if GGUF lacks it. Vectors are f32. The last size must be a
	// multiple of the type's block.
	Type func(name string, dims []int, was gguf.Type) gguf.Type
	// Errors, if not nil, is called once a matrix is written whose elements were rounded.
	Errors func(RoundingError)
}

// RoundingError says how far the elements of a matrix moved when they were rounded to another type.
type RoundingError struct {
	// Name is the tensor in the file, and Type the type in which that has it.
	Name string
	Type gguf.Type
	// RMS is the root of the mean square of the differences, Max the greatest one, and Of the root of the mean square of the
	// elements.
	RMS, Max, Of float64
}

// rounding sums what a [RoundingError] says.
type rounding struct {
	n                   int
	squares, max, total float64
}

// add adds elements and what they are in a file.
func (r *rounding) add(t gguf.Type, x []float32, data []byte) error {
	read := make([]float32, len(x))
	if err := gguf.Dequantize(t, read, data); err != nil {
		return err
	}
	for i, x := range x {
		d := math.Abs(float64(read[i]) - float64(x))
		r.squares += d * d
		r.max = max(r.max, d)
		r.total += float64(x) * float64(x)
	}
	r.n += len(x)
	return nil
}

func (r *rounding) of(name string, t gguf.Type) RoundingError {
	n := float64(max(r.n, 1))
	return RoundingError{Name: name, Type: t, RMS: math.Sqrt(r.squares / n), Max: r.max, Of: math.Sqrt(r.total / n)}
}

// ToGGUF returns a decoder's file in the format GGUF, with llama.cpp's layout, as arguments of
// [gguf.Write]. Each tensor is read and converted only while it is written. The error is of kind
// [ir.ErrUnsupported] for a field that the format cannot express, such as a window of some layers
// of Qwen2, which it names, and otherwise those of [Bind].
func ToGGUF(c Config, t Tensors, o GGUFOptions) ([]gguf.Pair, []gguf.Entry, error) {
	v, err := newConverter(c, t)
	if err != nil {
		return nil, nil, err
	}
	g := &ggufWriter{converter: v, o: o, list: listing{infos: map[string]gguf.Info{}, floats: map[string][]float32{}}}
	metadata := g.metadata()
	if err := g.rope(&metadata); err != nil {
		return nil, nil, err
	}
	for _, p := range v.parameters {
		g.parameter(p)
	}
	metadata = append(metadata, o.Metadata...)
	return metadata, g.entries, g.check(metadata)
}

type ggufWriter struct {
	*converter
	o       GGUFOptions
	entries []gguf.Entry
	list    listing
}

// metadata returns the keys that the configuration has.
func (g *ggufWriter) metadata() []gguf.Pair {
	c, arch := g.config, g.f.gguf
	out := []gguf.Pair{{Key: "general.architecture", Value: arch}}
	if g.o.Name != "" {
		out = append(out, gguf.Pair{Key: "general.name", Value: g.o.Name})
	}
	add := func(key string, value any) { out = append(out, gguf.Pair{Key: arch + "." + key, Value: value}) }
	number := func(key string, n int) { add(key, uint32(n)) }
	number("block_count", c.Layers)
	number("context_length", c.Context)
	number("embedding_length", c.Width)
	number("feed_forward_length", c.Hidden)
	number("vocab_size", c.Vocabulary)
	number("attention.head_count", c.Heads)
	number("attention.head_count_kv", c.KVHeads)
	if c.LayerNorm {
		add("attention.layer_norm_epsilon", float32(c.Epsilon))
	} else {
		add("attention.layer_norm_rms_epsilon", float32(c.Epsilon))
	}
	if c.Rope != nil {
		number("attention.key_length", c.HeadSize)
		number("attention.value_length", c.HeadSize)
	}
	if c.Window > 0 {
		number("attention.sliding_window", c.Window)
		if g.f.localRope {
			add("attention.sliding_window_pattern", c.Windowed)
		}
	}
	if c.Experts > 0 {
		number("expert_count", c.Experts)
		number("expert_used_count", c.ExpertsPerToken)
		number("expert_feed_forward_length", c.Hidden)
	}
	if c.SharedHidden > 0 {
		number("expert_shared_feed_forward_length", c.SharedHidden)
	}
	switch c.Architecture {
	case "cohere", "cohere2":
		add("logit_scale", float32(c.LogitScale))
	case "granite":
		add("embedding_scale", float32(c.EmbeddingScale))
		add("residual_scale", float32(c.ResidualScale))
		add("attention.scale", float32(c.Scale))
		add("logit_scale", float32(1/c.LogitScale))
	}
	if c.ScoreSoftcap != 0 {
		add("attn_logit_softcapping", float32(c.ScoreSoftcap))
	}
	if c.LogitSoftcap != 0 {
		add("final_logit_softcapping", float32(c.LogitSoftcap))
	}
	return out
}

// rope adds the keys and the tensors of the rotation.
func (g *ggufWriter) rope(metadata *[]gguf.Pair) error {
	r, arch := g.config.Rope, g.f.gguf
	if r == nil {
		return nil
	}
	add := func(key string, value any) {
		*metadata = append(*metadata, gguf.Pair{Key: arch + ".rope." + key, Value: value})
	}
	add("freq_base", float32(r.Base))
	add("dimension_count", uint32(r.Size))
	if r.LocalBase != 0 {
		add("freq_base_swa", float32(r.LocalBase))
	}
	s, original, ok := r.scaling(g.config.Context)
	switch {
	case !ok || s.Type == "llama3":
		g.vector("rope_freqs.weight", r.Divisors)
	case s.Type == "longrope":
		g.vector("rope_factors_short.weight", r.Divisors)
		g.vector("rope_factors_long.weight", r.LongDivisors)
		add("scaling.original_context_length", uint32(original))
		add("scaling.attn_factor", float32(r.Amplitude))
	case s.Type != "default":
		add("scaling.type", s.Type)
		add("scaling.factor", float32(s.Factor))
		add("scaling.original_context_length", uint32(original))
	}
	if g.heads(g.f.blocks+"/0/"+g.f.attention+"/"+g.f.q+"/weight") > 0 && g.f.interleaved && !g.f.neighbours && r.Size != g.config.HeadSize {
		return ir.Errorf(ir.ErrUnsupported, "GGUF of %s cannot express that Rope.Size is %d, less than HeadSize, %d", g.config.Architecture, r.Size, g.config.HeadSize)
	}
	return nil
}

// vector adds a tensor of numbers.
func (g *ggufWriter) vector(name string, numbers []float64) {
	x := make([]float32, len(numbers))
	for i, n := range numbers {
		x[i] = float32(n)
	}
	g.list.floats[name] = x
	g.add(name, gguf.F32, []int{len(x)}, func(w io.Writer) error { return float32s(w, x) })
}

func (g *ggufWriter) add(name string, t gguf.Type, dims []int, write func(w io.Writer) error) {
	g.entries = append(g.entries, gguf.Entry{Name: name, Type: t, Dims: dims, Write: write})
	g.list.infos[name] = gguf.Info{Type: t, Dims: dims}
}

// parameter adds the tensor of a parameter; experts of a layer are one.
func (g *ggufWriter) parameter(p ir.Port) {
	at := strings.LastIndexByte(p.Name, '/')
	to := g.f.inGGUF(g.config)[p.Name[:at]]
	name := to.name + "." + p.Name[at+1:]
	if _, already := g.list.infos[name]; already {
		return // another expert
	}
	dims, _ := p.Value.Shape().Ints()
	experts := []ir.Port{p}
	if to.expert >= 0 {
		dims = append([]int{g.config.Experts}, dims...)
		experts = g.experts(name)
	}
	t, as := gguf.F32, g.storedAs(p.Name)
	if len(dims) > 1 {
		t = as
		if g.o.Type != nil {
			t = g.o.Type(name, dims, as)
		}
	}
	g.add(name, t, dims, func(w io.Writer) error {
		var r rounding
		for _, p := range experts {
			if err := g.write(w, p, t, &r); err != nil {
				return err
			}
		}
		if g.o.Errors != nil && r.max > 0 {
			g.o.Errors(r.of(name, t))
		}
		return nil
	})
}

// experts returns the parameters that are parts of a tensor.
func (g *ggufWriter) experts(name string) []ir.Port {
	places := g.f.inGGUF(g.config)
	var out []ir.Port
	for _, p := range g.parameters {
		at := strings.LastIndexByte(p.Name, '/')
		if places[p.Name[:at]].name+"."+p.Name[at+1:] == name {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b ir.Port) int { return places[dirOf(a.Name)].expert - places[dirOf(b.Name)].expert })
	return out
}

func dirOf(name string) string { return name[:strings.LastIndexByte(name, '/')] }

// storedAs returns the GGUF type of a parameter in the source file; f32 if GGUF lacks that type.
func (c *converter) storedAs(name string) gguf.Type {
	info := c.of[name].info
	switch {
	case !info.DType.Valid():
		return info.Packed
	case info.DType == ir.F16:
		return gguf.F16
	case info.DType == ir.BF16:
		return gguf.BF16
	}
	return gguf.F32
}

// write writes a parameter in a type. It copies the bytes if type and order of rows are the stored
// ones; otherwise r has how far they moved, if somebody asks.
func (g *ggufWriter) write(w io.Writer, p ir.Port, t gguf.Type, r *rounding) error {
	s := g.of[p.Name]
	moves := g.f.interleaved && !g.config.Rope.Interleaved && g.heads(p.Name) > 0
	if !moves && s.info.Packed == t && !s.info.DType.Valid() {
		data, err := g.tensors.Bytes(s.name)
		if err == nil && s.experts > 0 {
			n := len(data) / s.experts
			data = data[s.expert*n:][:n]
		}
		if err == nil {
			_, err = w.Write(data)
		}
		return err
	}
	x, err := g.floats(p)
	if err != nil {
		return err
	}
	if moves {
		rows, _ := p.Value.Shape()[0].Const()
		x = paired(x, g.heads(p.Name), rows, false)
	}
	data, err := gguf.Quantize(t, x)
	if err == nil && g.o.Errors != nil {
		err = r.add(t, x, data)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// check reads the metadata back.
func (g *ggufWriter) check(metadata []gguf.Pair) error {
	var head bytes.Buffer
	if err := gguf.Write(&head, metadata, nil); err != nil {
		return err
	}
	file, err := gguf.OpenAt(bytes.NewReader(head.Bytes()), int64(head.Len()))
	if err != nil {
		return err
	}
	g.list.File = file
	read, err := fromGGUF(g.list)
	if err != nil {
		return err
	}
	return lossless(g.config.canonical(), read.canonical(), "GGUF")
}
