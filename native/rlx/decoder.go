package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
	irlm "github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native/lm"
	"github.com/rlx-go/rlx/native/safetensors"
)

// isLanguageModel reports whether files of a format are language models.
func isLanguageModel(format string) bool { return format == "gguf" || format == "folder" }

// decoder reads a language model as a graph from tokens [batch, time] to the logits after each, without a cache. Its files stay open
// until the conversion ends: weights are windows of them.
func (c *conversion) decoder(from string, o irlm.BindOptions) (*model, error) {
	if c.dtype != "" {
		var err error
		if o.DType, err = dtype.Parse(c.dtype); err != nil || !o.DType.IsFloat() {
			return nil, usagef("-dtype %s: it must be f32, f16 or bf16", c.dtype)
		}
		o.Unpack = true
	}
	source, err := lm.Load(from, o)
	if err != nil {
		return nil, err
	}
	c.open = append(c.open, source)
	title := strings.TrimSuffix(filepath.Base(from), filepath.Ext(from))
	g, err := ir.Build(title, func(b *ir.Builder) {
		nn.Infer(b)
		b.Output("logits", source.Decoder(b, b.Input("tokens", ir.I32, ir.Sym("batch"), ir.Sym("time"))))
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	m := &model{weights: rlx.Inputs{}}
	for _, name := range source.Weights.Names() {
		if _, used := g.Port(name); !used {
			continue
		}
		if m.weights[name], err = source.Tensor(name); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
	}
	m.module, err = ir.NewModule(title, ir.Entry{Name: "run", Graph: g})
	return m, err
}

// plan compiles a graph or a language model, whose weights are written beside the plan.
func (c *conversion) plan(ctx context.Context, from, to string) error {
	if !c.force && exists(to) {
		return existsError(to)
	}
	if !isLanguageModel(formatOf(from)) {
		return planCommand.run(ctx, append([]string{from, "-o", to}, c.sizes.flags()...), c.std)
	}
	m, err := c.decoder(from, irlm.BindOptions{})
	if err != nil {
		return err
	}
	bound, err := c.sizes.bind(m)
	if err != nil {
		return err
	}
	targets, err := targetsOf([]string{"webgpu", "wasm"})
	if err != nil {
		return err
	}
	data, _, err := compileFile(bound, targets, nil, "")
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if err := c.writeWeights(m, to); err != nil {
		return err
	}
	return c.create(to, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// writeWeights writes the weights of a model in a safetensors file next to TO.
func (c *conversion) writeWeights(m *model, to string) error {
	if len(m.weights) == 0 {
		return nil
	}
	name := strings.TrimSuffix(to, filepath.Ext(to)) + ".safetensors"
	return c.create(name, func(w io.Writer) error { return safetensors.Write(w, m.weights, nil) })
}
