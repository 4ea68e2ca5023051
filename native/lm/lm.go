// Package lm opens language models: a folder of Hugging Face, with config.json and safetensors, or a GGUF
// file. Package ir/lm has the graphs.
//
//	model, err := lm.Load("SmolLM2-135M-Instruct.Q4_1.gguf")
//	defer model.Close()
//	next, err := ir.Build("next", func(b *ir.Builder) {
//		nn.Infer(b)
//		nn.Cache(b, 512)
//		logits := model.Decoder(b, b.Input("tokens", ir.I32, ir.Dims(1, 1)...), irlm.DecoderOptions{Last: true})
//		b.Output("next", ops.ArgMax(b, logits, -1))
//	})
//	// compile a module with the entry next, then
//	err = model.Set(ctx, program)
package lm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/nn"
	"github.com/rlx-go/rlx/native"
	"github.com/rlx-go/rlx/native/safetensors"
)

// Model is an open model. Its weights are windows of mapped files: opening reads no elements.
type Model struct {
	Config  lm.Config
	Weights *lm.Weights
	// Tokenizer is the file that describes the tokenizer: tokenizer.json of a folder, or the GGUF file
	// itself; "" if there is none.
	Tokenizer string
	file      io.Closer
}

// Load opens a GGUF file, by its name's end, or else a folder with config.json and model.safetensors or
// model.safetensors.index.json. Errors are those of [lm.ReadConfig], [lm.FromGGUF], [lm.Bind],
// [gguf.Open] and [safetensors.Open].
func Load(path string, o ...lm.BindOptions) (*Model, error) {
	open := openFolder
	if strings.HasSuffix(path, ".gguf") {
		open = openGGUF
	}
	m, tensors, err := open(path)
	if err != nil {
		return nil, err
	}
	if m.Weights, err = lm.Bind(m.Config, tensors, o...); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), m.Close())
	}
	return m, nil
}

func openGGUF(path string) (*Model, lm.Tensors, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, nil, err
	}
	c, err := lm.FromGGUF(f)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return &Model{Config: c, Tokenizer: path, file: f}, lm.OfGGUF(f), nil
}

func openFolder(path string) (*Model, lm.Tensors, error) {
	text, err := os.Open(filepath.Join(path, "config.json"))
	if err != nil {
		return nil, nil, err
	}
	c, err := lm.ReadConfig(text)
	if err = errors.Join(err, text.Close()); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := OpenFolder(path)
	if err != nil {
		return nil, nil, err
	}
	m := &Model{Config: c, file: f}
	if t := filepath.Join(path, "tokenizer.json"); exists(t) {
		m.Tokenizer = t
	}
	return m, OfSafetensors(f), nil
}

// OpenFolder opens the weights of a folder of Hugging Face: the files that model.safetensors.index.json names,
// or model.safetensors. Errors are those of [safetensors.Open].
func OpenFolder(path string) (*safetensors.File, error) {
	if name := filepath.Join(path, "model.safetensors.index.json"); exists(name) {
		return safetensors.Open(name)
	}
	return safetensors.Open(filepath.Join(path, "model.safetensors"))
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// Close closes the files. The weights must not be used afterwards; programs that have them keep them.
func (m *Model) Close() error {
	if m == nil {
		return ir.Attrf("the model is nil: it must be from Open")
	}
	return m.file.Close()
}

// Decoder is [lm.Decoder] with the weights in the file's storage format.
func (m *Model) Decoder(b *ir.Builder, tokens ir.Value, o ...lm.DecoderOptions) (logits ir.Value) {
	nn.Stored(b, m.Weights.Storage, func() { logits = lm.Decoder(b, m.Config, tokens, o...) })
	return logits
}

// Loss is [lm.Loss] with the weights in the file's storage format.
func (m *Model) Loss(b *ir.Builder, tokens, next ir.Value, o ...lm.LossOptions) (loss ir.Value) {
	nn.Stored(b, m.Weights.Storage, func() { loss = lm.Loss(b, m.Config, tokens, next, o...) })
	return loss
}

// Setter is a program, which has parameters.
type Setter interface {
	Set(ctx context.Context, name string, t native.Tensor) error
}

// Set sets the parameters of a program, one after the other.
func (m *Model) Set(ctx context.Context, p Setter) error {
	if m == nil {
		return ir.Attrf("the model is nil: it must be from Open")
	}
	for _, name := range m.Weights.Names() {
		t, err := m.Tensor(name)
		if err == nil {
			err = p.Set(ctx, name, t)
		}
		if err != nil {
			return fmt.Errorf("parameter %q: %w", name, err)
		}
	}
	return nil
}

// Tensor returns a parameter: a read-only window of the file if it needs no conversion, not to be
// used after [Model.Close]. The error is of kind [ir.ErrName] for an unknown name.
func (m *Model) Tensor(name string) (native.Tensor, error) {
	if m == nil {
		return native.Tensor{}, ir.Attrf("the model is nil: it must be from Open")
	}
	return TensorOf(m.Weights, name)
}

// TensorOf returns a parameter of bound weights: see [Model.Tensor].
func TensorOf(w *lm.Weights, name string) (native.Tensor, error) {
	data, err := w.Bytes(name)
	if err != nil {
		return native.Tensor{}, err
	}
	t, _ := w.Type(name)
	dims, _ := t.Shape.Ints()
	return native.Tensor{DType: t.DType, Dims: dims, Data: data}, nil
}

// OfSafetensors returns the tensors of a file of Hugging Face.
func OfSafetensors(f *safetensors.File) lm.Tensors { return ofSafetensors{f} }

type ofSafetensors struct{ *safetensors.File }

func (f ofSafetensors) GGUF() bool { return false }

func (f ofSafetensors) Info(name string) (lm.TensorInfo, bool) {
	i, ok := f.File.Info(name)
	return lm.TensorInfo{DType: i.DType, Dims: i.Dims}, ok
}

func (f ofSafetensors) Bytes(name string) ([]byte, error) {
	t, err := f.Tensor(name)
	return t.Data, err
}
