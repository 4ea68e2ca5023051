package models

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlx-go/rlx"
	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/ir/models"
	"github.com/rlx-go/rlx/ir/nn"
	nativelm "github.com/rlx-go/rlx/native/lm"
)

// DecoderKind is the kind of a language model, in addition to those of package ir/models:
// [Model.Decoder].
const DecoderKind models.Kind = "decoder"

// Model is an open model. Its weights are windows of mapped files: opening reads no elements.
type Model struct {
	// Kind is the kind of the model.
	Kind models.Kind
	// Config describes the model, unless it is a decoder.
	Config  models.Config
	Weights *lm.Weights
	// Decoder is the language model of [DecoderKind], nil for others.
	Decoder *nativelm.Model
	// Folder is the path that was opened.
	Folder string
	// Tokenizer is that of the folder's tokenizer.json or of the GGUF file, nil if there is none or the model is a decoder.
	Tokenizer *tokenizer.Tokenizer

	file    io.Closer
	pooling models.Pooling // that of a GGUF file
}

// Open opens a folder of Hugging Face with config.json and safetensors, or a GGUF file, which is of a
// decoder or an encoder of texts such as BERT. [Model.Kind] is the kind found. The error is of kind [ir.ErrUnsupported] for an
// unknown architecture and lists the known ones, or those of [models.ReadConfig], [models.FromGGUF], [models.Bind],
// [nativelm.Load] and [tokenizer.Open].
func Open(path string, o ...lm.BindOptions) (*Model, error) {
	architecture, err := architectureOf(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	inGGUF := strings.HasSuffix(path, ".gguf")
	if inGGUF && architecture != models.ArchitectureInGGUF || !inGGUF && slices.Contains(lm.Architectures(), strings.TrimSuffix(architecture, "_text")) {
		decoder, err := nativelm.Load(path, o...)
		if err != nil {
			return nil, err
		}
		return &Model{Kind: DecoderKind, Decoder: decoder, Weights: decoder.Weights, Folder: path, file: decoder}, nil
	}
	m := &Model{Folder: path}
	open := m.open
	if inGGUF {
		open = m.openGGUF
	}
	if err := open(o); err != nil {
		if m.file != nil {
			err = errors.Join(err, m.file.Close())
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// architectureOf returns the model_type of a folder's config.json, or the general.architecture of a GGUF file.
func architectureOf(path string) (name string, err error) {
	if strings.HasSuffix(path, ".gguf") {
		f, err := gguf.Open(path)
		if err != nil {
			return "", err
		}
		name, _ = f.Text("general.architecture")
		return name, f.Close()
	}
	var c struct {
		ModelType string `json:"model_type"`
	}
	return c.ModelType, readJSON(filepath.Join(path, "config.json"), &c, true)
}

// open reads the folder of a model that is no decoder.
func (m *Model) open(o []lm.BindOptions) error {
	text, err := os.Open(filepath.Join(m.Folder, "config.json"))
	if err != nil {
		return err
	}
	m.Config, err = models.ReadConfig(text)
	if err = errors.Join(err, text.Close()); err != nil {
		return err
	}
	m.Kind = m.Config.Kind()
	if err := m.readSound(); err != nil {
		return err
	}
	f, err := nativelm.OpenFolder(m.Folder)
	if err != nil {
		return err
	}
	m.file = f
	if m.Weights, err = models.Bind(&m.Config, nativelm.OfSafetensors(f), o...); err != nil {
		return err
	}
	m.Tokenizer, err = tokenizer.Open(filepath.Join(m.Folder, "tokenizer.json"))
	if errors.Is(err, os.ErrNotExist) {
		m.Tokenizer, err = nil, nil
	}
	return err
}

// openGGUF opens the GGUF file of an encoder.
func (m *Model) openGGUF(o []lm.BindOptions) error {
	f, err := gguf.Open(m.Folder)
	if err != nil {
		return err
	}
	m.file = f
	if m.Config, m.pooling, err = models.FromGGUF(f); err != nil {
		return err
	}
	m.Kind = m.Config.Kind()
	if m.Weights, err = models.Bind(&m.Config, lm.OfGGUF(f), o...); err != nil {
		return err
	}
	if f.Value("tokenizer.ggml.model") == nil {
		return nil
	}
	m.Tokenizer, err = tokenizer.FromGGUF(f)
	return err
}

// readJSON reads a file of the folder, which may be missing unless needed.
func readJSON(name string, to any, needed bool) error {
	data, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) && !needed {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%w: %s: %w", lm.ErrConfig, filepath.Base(name), err)
	}
	return nil
}

// Close closes the files. The weights must not be used afterwards; programs that have them keep them.
func (m *Model) Close() error {
	if m == nil {
		return ir.Attrf("the model is nil: it must be from Open")
	}
	return m.file.Close()
}

// Build calls f with the stored weights, for a graph of package ir/models in inference.
func (m *Model) Build(name string, f func(b *ir.Builder)) (*ir.Graph, error) {
	if m == nil {
		return nil, ir.Attrf("the model is nil: it must be from Open")
	}
	return ir.Build(name, func(b *ir.Builder) {
		nn.Infer(b)
		nn.Stored(b, m.Weights.Storage, func() { f(b) })
	})
}

// Set sets those parameters of a program that the model has.
func (m *Model) Set(ctx context.Context, p *rlx.Program) error {
	if m == nil {
		return ir.Attrf("the model is nil: it must be from Open")
	}
	for _, slot := range p.Persistent() {
		if _, ok := m.Weights.Type(slot.Name); !ok {
			continue
		}
		t, err := nativelm.TensorOf(m.Weights, slot.Name)
		if err == nil {
			err = p.Set(ctx, slot.Name, t)
		}
		if err != nil {
			return fmt.Errorf("parameter %q: %w", slot.Name, err)
		}
	}
	return nil
}

// compile returns a program of entries with the model's weights.
func (m *Model) compile(ctx context.Context, s *rlx.Session, sizes map[string]rlx.Size, entries ...ir.Entry) (*rlx.Program, error) {
	module, err := ir.NewModule("model", entries...)
	if err != nil {
		return nil, err
	}
	p, err := s.CompileWith(ctx, module, rlx.CompileOptions{Sizes: sizes})
	if err != nil {
		return nil, err
	}
	if err := m.Set(ctx, p); err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	return p, nil
}

// needs returns an error of kind [ir.ErrUnsupported] unless the model is of a kind.
func (m *Model) needs(kind models.Kind) error {
	if m == nil {
		return ir.Attrf("the model is nil: it must be from Open")
	}
	if m.Kind != kind {
		return ir.Errorf(ir.ErrUnsupported, "%s is of kind %q: it must be of kind %q", m.Folder, string(m.Kind), string(kind))
	}
	return nil
}
