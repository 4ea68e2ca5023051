package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/format/npz"
	"github.com/rlx-go/rlx/ir/format/onnx"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/safetensors"
)

var convertCommand = command{
	name: "convert", args: "FROM TO", short: "write a model or its weights in another format",
	long: `Writes FROM in the format that the end of TO's name says:

  language models  a folder of Hugging Face or a .gguf file to a .gguf file or a folder, with the
                   tokenizer; -quantize packs the matrices of a .gguf file
  tensors          .safetensors to .npz and .npz to .safetensors
  graphs           .onnx to .txt, the text form, with the weights in a .safetensors beside it; the text
                   form to .onnx, with the weights of -weights; both to .rlxp, as "rlx plan" does;
                   -calibrate rounds products to int8, from and to .onnx and .txt
  from a language model to a graph   a folder or a .gguf file to .onnx, .txt and .rlxp: from "tokens"
                   [batch, time] to "logits", without a cache. In .onnx weights are floats, of -dtype

Types of -quantize are f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k and q6_k. The weight of
the logits becomes q6_k or q8_0, rows that are no whole blocks a type of smaller blocks, and vectors and
routers stay f32. -check measures the perplexity of a text with FROM and with TO, and prints how far the
elements of each matrix were rounded. The memory is that of one tensor. A file that exists is replaced only with -force.

-calibrate has rows of inputs by name, as numpy.savez writes them: ranges of what products read are
those of the rows. Weights become int8 with a scale for each channel. For each output it prints how far
that moved, and if the rows have what is expected of an output, by its name, the errors before and after.`,
	define: func(f *flag.FlagSet) runner {
		c := &conversion{sizes: sizesFlag(f)}
		f.BoolVar(&c.force, "force", false, "replace files that exist")
		f.StringVar(&c.quantize, "quantize", "", "`TYPE` of the matrices of a GGUF file; as they are by default")
		f.StringVar(&c.dtype, "dtype", "", "`TYPE` of the matrices of safetensors of a language model: f32, f16 or bf16")
		f.StringVar(&c.check, "check", "", "`FILE` with a text whose perplexity is measured before and after")
		f.IntVar(&c.perplexity.Context, "context", 0, "`TOKENS` of a window of -check; 0 for 512")
		f.StringVar(&c.calibrate, "calibrate", "", "`FILE` with typical inputs, .npz or .safetensors, by which products are rounded to int8")
		f.StringVar(&c.weights, "weights", "", "`FILE` with the weights of a graph, .safetensors or .npz")
		f.BoolVar(&c.external, "external", false, "write weights of an ONNX model to a file beside it, as those over 2 GB are")
		deviceFlag(f, &c.device)
		return c.run
	},
}

// conversion are the arguments of convert.
type conversion struct {
	perplexityOptions
	sizes                                      sizes
	quantize, dtype, check, weights, calibrate string
	force, external                            bool
	open                                       []io.Closer // files whose windows are in use
	std                                        stdio
}

// formatOf returns the format of a file by its name: the ending without the dot, "folder" for a folder or a
// name without an ending.
func formatOf(name string) string {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return "folder"
	}
	if ext := strings.TrimPrefix(filepath.Ext(name), "."); ext != "" {
		return ext
	}
	return "folder"
}

func (c *conversion) run(ctx context.Context, std stdio, args []string) error {
	if len(args) != 2 {
		return usagef("FROM and TO are %d arguments: two must be given", len(args))
	}
	c.std = std
	from, to := args[0], args[1]
	defer func() {
		for _, file := range c.open {
			file.Close() // read only
		}
	}()
	a, b := formatOf(from), formatOf(to)
	graph := func(format string) bool { return format == "onnx" || format == "txt" }
	switch {
	case c.calibrate != "" && (graph(a) || isLanguageModel(a)) && graph(b):
		return c.calibrated(ctx, from, to)
	case c.calibrate != "":
		return usagef("-calibrate is for graphs, not from .%s to .%s: -quantize packs language models", a, b)
	case isLanguageModel(a) && isLanguageModel(b):
		return c.languageModel(ctx, from, to)
	case c.quantize != "" || c.check != "" || c.dtype != "" && !isLanguageModel(a):
		return usagef("-quantize, -dtype and -check are for language models, not from .%s to .%s", a, b)
	case a == "safetensors" && b == "npz":
		return c.create(to, func(w io.Writer) error { return npzOf(w, from) })
	case a == "npz" && b == "safetensors":
		return c.create(to, func(w io.Writer) error { return safetensorsOf(w, from) })
	case b == "onnx" || b == "txt" && a != "txt":
		return c.graphTo(from, to)
	case b == "rlxp":
		return c.plan(ctx, from, to)
	case graph(a) && isLanguageModel(b):
		return usagef("from .%s to .%s is no conversion: a graph does not say which language model it is; the folder or the .gguf file that it came from can be converted", a, b)
	}
	return usagef("from .%s to .%s is no conversion: \"rlx help convert\" lists them", a, b)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func existsError(name string) error {
	return fmt.Errorf("%s: %w: -force replaces it", name, os.ErrExist)
}

// create writes a file, none after an error.
func (c *conversion) create(name string, write func(w io.Writer) error) error {
	if !c.force && exists(name) {
		return existsError(name)
	}
	if err := replaceFile(name, write); err != nil {
		return err
	}
	c.wrote(name)
	return nil
}

// wrote prints the name and the size of a file.
func (c *conversion) wrote(name string) {
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		fmt.Fprintf(c.std.out, "%s: %s\n", name, bytesText(info.Size()))
		return
	}
	fmt.Fprintln(c.std.out, name)
}

// npzOf writes the tensors of a safetensors file as arrays.
func npzOf(w io.Writer, from string) error {
	f, err := safetensors.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	var entries []npz.Entry
	for _, name := range f.Names() {
		entries = append(entries, npz.Entry{Name: name, Read: func() (*ir.Array, error) {
			t, err := f.Tensor(name)
			if err != nil {
				return nil, err
			}
			return t.Array()
		}})
	}
	return npz.WriteEntries(w, entries)
}

// safetensorsOf writes the arrays of an npz file as tensors.
func safetensorsOf(w io.Writer, from string) error {
	f, err := npz.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	var entries []safetensors.Entry
	for _, name := range f.Names() {
		t, err := f.Type(name)
		if err != nil {
			return err
		}
		dims, _ := t.Shape.Ints()
		entries = append(entries, safetensors.Entry{Name: name, DType: t.DType, Dims: dims, Write: func(w io.Writer) error {
			a, err := f.Array(name)
			if err == nil {
				_, err = w.Write(native.FromArray(a).Data)
			}
			return err
		}})
	}
	return safetensors.WriteEntries(w, entries, nil)
}

// graphs reads graphs with their weights, those of -weights if that is given. The options are for the weights of a language model.
func (c *conversion) graphs(from string, o irlm.BindOptions) (*model, error) {
	if isLanguageModel(formatOf(from)) {
		return c.decoder(from, o)
	}
	m, err := load(from, c.std.in, c.sizes)
	if err != nil {
		return nil, err
	}
	if m.module == nil {
		return nil, fmt.Errorf("%s is a plan for %s: it must be the text form of graphs", from, m.plan.Target)
	}
	if c.weights != "" {
		m.weights, err = readTensors(c.weights)
	}
	return m, err
}

// graphTo writes graphs and their weights in another format. Symbols without a size stay open.
func (c *conversion) graphTo(from, to string) error {
	m, err := c.graphs(from, irlm.BindOptions{Unpack: formatOf(to) == "onnx"})
	if err != nil {
		return err
	}
	return c.write(m, to)
}

// write writes a model in the format that the end of TO's name says: one ONNX model for each entry, or one text of all.
func (c *conversion) write(m *model, to string) error {
	if formatOf(to) == "onnx" {
		return c.writeONNX(m, to)
	}
	if err := c.writeWeights(m, to); err != nil {
		return err
	}
	return c.create(to, func(w io.Writer) error {
		_, err := io.WriteString(w, m.module.String())
		return err
	})
}

// writeONNX writes an ONNX model for each entry.
func (c *conversion) writeONNX(m *model, to string) error {
	for _, e := range m.module.Entries {
		name := to
		if len(m.module.Entries) > 1 {
			name = strings.TrimSuffix(to, ".onnx") + "-" + strings.ReplaceAll(e.Name, string(filepath.Separator), "-") + ".onnx"
		}
		if !c.force && (exists(name) || exists(name+".data")) {
			return existsError(name)
		}
		if err := c.entry(e.Graph, m.weights, name); err != nil {
			return fmt.Errorf("entry %q: %w", e.Name, err)
		}
	}
	return nil
}

// entry writes the model of a graph.
func (c *conversion) entry(g *ir.Graph, weights map[string]native.Tensor, to string) error {
	sizes := map[string]ir.Dim{}
	for _, symbol := range g.Symbols() {
		if n := c.sizes[symbol]; n > 0 {
			sizes[symbol] = ir.N(n)
		}
	}
	g, err := g.Substitute(sizes)
	if err != nil {
		return err
	}
	has := func(name string) bool { _, ok := weights[name]; return ok }
	for _, p := range g.Ports() {
		if t := weights[p.Name]; has(p.Name) && p.Kind != ir.InputPort {
			weights[p.Name] = fitted(t, p.Value.DType())
		}
	}
	m, err := onnx.Export(g, onnx.ExportOptions{Has: has, Weights: func(name string) ([]byte, error) { return weights[name].Data, nil }})
	if err != nil {
		return err
	}
	if err := m.WriteFile(to, c.external); err != nil {
		return err
	}
	c.wrote(to)
	return nil
}

// languageModel converts a language model and reports losses.
func (c *conversion) languageModel(ctx context.Context, from, to string) error {
	o := lm.ConvertOptions{Force: c.force}
	if c.quantize != "" {
		t, ok := gguf.TypeOf(strings.ToLower(c.quantize))
		if !ok || formatOf(to) != "gguf" {
			return usagef("-quantize %s: it must be q8_0, q4_k or another type that the help lists, and TO a .gguf file", c.quantize)
		}
		o.Type, o.Quantize = t, true
	}
	if c.dtype != "" {
		var err error
		if o.DType, err = dtype.Parse(c.dtype); err != nil || formatOf(to) != "folder" {
			return usagef("-dtype %s: it must be f32, f16 or bf16, of a folder", c.dtype)
		}
	}
	show, clearLine := progressOn(c.std.err)
	o.Progress = func(done, of int, name string) { show("%d of %d tensors  %s", done, of, name) }
	errors := tabwriter.NewWriter(c.std.out, 0, 0, 2, ' ', 0)
	if c.check != "" {
		fmt.Fprintln(errors, "tensor\ttype\trms of elements\trms error\tmax error")
		o.Errors = func(e irlm.RoundingError) {
			fmt.Fprintf(errors, "%s\t%s\t%.4g\t%.4g\t%.4g\n", e.Name, e.Type, e.Of, e.RMS, e.Max)
		}
	}
	convert := func() error {
		err := lm.Convert(from, to, o)
		if clearLine(); err == nil {
			c.wrote(to)
		}
		if err == nil && c.check != "" && c.quantize != "" {
			err = errors.Flush()
		}
		return err
	}
	switch {
	case c.check == "":
		return convert()
	case !c.force && exists(to):
		return existsError(to)
	}
	return c.compare(ctx, from, to, convert)
}

// progressOn returns functions that show a line in place of the one before, and that clear it. They do nothing
// where w is no terminal.
func progressOn(w io.Writer) (show func(text string, args ...any), clearLine func()) {
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			return func(text string, args ...any) { fmt.Fprintf(w, "\r%-79.79s", fmt.Sprintf(text, args...)) },
				func() { fmt.Fprintf(w, "\r%79s\r", "") }
		}
	}
	return func(string, ...any) {}, func() {}
}

// compare writes the sizes and the perplexities of a model and of what convert makes of it. A text that is too short is refused
// before that.
func (c *conversion) compare(ctx context.Context, from, to string, convert func() error) error {
	table := tabwriter.NewWriter(c.std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "model\tweights\tperplexity\t±")
	row := func(name string) error {
		r, bytes, err := c.measure(ctx, name, c.check, c.std)
		if err == nil {
			fmt.Fprintf(table, "%s\t%s\t%.4f\t%.4f\n", name, bytesText(bytes), r.Perplexity(), r.Error())
		}
		return err
	}
	if err := row(from); err != nil {
		return err
	}
	if err := convert(); err != nil {
		return err
	}
	if err := row(to); err != nil {
		return err
	}
	return table.Flush()
}
