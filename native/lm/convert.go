package lm

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/format/tokenizer"
	"github.com/rlx-go/rlx/ir/lm"
	"github.com/rlx-go/rlx/native/safetensors"
)

// ConvertOptions are the options of [Convert].
type ConvertOptions struct {
	// Quantize stores the matrices of a GGUF file as Type, one that [gguf.Quantize] supports;
	// without it they keep their types.
	Quantize bool
	Type     gguf.Type
	// DType is the element type of matrices in safetensors: see [lm.HFOptions].
	DType ir.DType
	// Force replaces files that exist.
	Force bool
	// Progress, if not nil, is called after each tensor with the number of tensors written.
	Progress func(done, of int, name string)
	// Errors, if not nil, is called with each matrix of a GGUF file whose elements were rounded.
	Errors func(lm.RoundingError)
}

// Convert converts a language model, a folder of Hugging Face or a GGUF file as [Load] opens them,
// to the other format: to a GGUF file if the name ends in ".gguf", or else to a folder with
// config.json, model.safetensors and tokenizer.json. The tokenizer is converted, too. It needs
// memory for one tensor.
//
// With Quantize the matrices of a GGUF file are packed: those of linear layers as Type, the embeddings too, and
// the weight of the logits, where errors cost most, as q6_k, or q8_0 for a Type of 8 bits. Where a row is no
// whole number of blocks of 256, q4_k becomes q5_0, q5_k q5_1 and q6_k q8_0; where it is none of 32, f16. Routers
// of experts and vectors stay f32.
//
// Errors are those of [Load], [lm.ToGGUF], [lm.ToHF], [tokenizer.ToGGUF] and [tokenizer.ToJSON], and wrap
// [fs.ErrExist] for a file that exists. What was written is removed after an error.
func Convert(from, to string, o ConvertOptions) error {
	open := openFolder
	if strings.HasSuffix(from, ".gguf") {
		open = openGGUF
	}
	m, tensors, err := open(from)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	defer m.Close() // read only
	c := &converting{from: from, to: to, model: m, tensors: tensors, o: o}
	write := c.folder
	if strings.HasSuffix(to, ".gguf") {
		write = c.gguf
	}
	if err := write(); err != nil {
		for _, name := range c.made {
			err = errors.Join(err, os.Remove(name))
		}
		return fmt.Errorf("%s: %w", to, err)
	}
	return nil
}

// converting is a conversion.
type converting struct {
	from, to string
	model    *Model
	tensors  lm.Tensors
	o        ConvertOptions
	made     []string // files and folders that were made
}

// create creates a file under a temporary name: the file that it replaces may be the source.
func (c *converting) create(name string, write func(w io.Writer) error) error {
	if _, err := os.Stat(name); err == nil && !c.o.Force {
		return &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	part := name + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	c.made = append([]string{part}, c.made...)
	b := bufio.NewWriterSize(f, 1<<20)
	if err = write(b); err == nil {
		err = b.Flush()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	c.made[0] = name
	return os.Rename(part, name)
}

// reporting returns a function that writes a tensor and reports that to Progress.
func (c *converting) reporting(i, of int, name string, write func(w io.Writer) error) func(w io.Writer) error {
	return func(w io.Writer) error {
		err := write(w)
		if err == nil && c.o.Progress != nil {
			c.o.Progress(i+1, of, name)
		}
		return err
	}
}

func (c *converting) gguf() error {
	o := lm.GGUFOptions{Name: strings.TrimSuffix(filepath.Base(c.to), ".gguf"), Errors: c.o.Errors}
	var err error
	if o.Metadata, err = c.metadata(); err != nil {
		return err
	}
	if c.o.Quantize {
		elements, _ := c.o.Type.Block()
		if _, err := gguf.Quantize(c.o.Type, make([]float32, elements)); err != nil {
			return err
		}
		o.Metadata = append(o.Metadata, gguf.Pair{Key: "general.quantization_version", Value: uint32(2)})
		o.Type = func(name string, dims []int, _ gguf.Type) gguf.Type { return packedAs(c.o.Type, name, dims) }
	}
	metadata, entries, err := lm.ToGGUF(c.model.Config, c.tensors, o)
	if err != nil {
		return err
	}
	for i, e := range entries {
		entries[i].Write = c.reporting(i, len(entries), e.Name, e.Write)
	}
	return c.create(c.to, func(w io.Writer) error { return gguf.Write(w, metadata, entries) })
}

// packedAs returns the type in which a matrix is stored.
func packedAs(t gguf.Type, name string, dims []int) gguf.Type {
	if strings.Contains(name, "ffn_gate_inp") {
		return gguf.F32
	}
	if elements, _ := t.Block(); elements == 1 {
		return t
	}
	if name == "output.weight" {
		if t = gguf.Q6_K; dims[len(dims)-1]%256 != 0 {
			t = gguf.Q8_0
		}
	}
	smaller := map[gguf.Type]gguf.Type{gguf.Q4_K: gguf.Q5_0, gguf.Q5_K: gguf.Q5_1, gguf.Q6_K: gguf.Q8_0}
	for {
		elements, _ := t.Block()
		if dims[len(dims)-1]%elements == 0 {
			return t
		}
		next, ok := smaller[t]
		if !ok {
			return gguf.F16
		}
		t = next
	}
}

// metadata returns the keys of the tokenizer.
func (c *converting) metadata() ([]gguf.Pair, error) {
	if file, ok := c.model.file.(*gguf.File); ok {
		var out []gguf.Pair
		for _, key := range file.Keys() {
			if strings.HasPrefix(key, "tokenizer.") {
				out = append(out, gguf.Pair{Key: key, Value: file.Value(key)})
			}
		}
		return out, nil
	}
	if c.model.Tokenizer == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.model.Tokenizer)
	if err != nil {
		return nil, err
	}
	config, err := os.ReadFile(filepath.Join(c.from, "tokenizer_config.json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return tokenizer.ToGGUF(text, config)
}

func (c *converting) folder() error {
	o := lm.HFOptions{DType: c.o.DType, Config: map[string]any{}}
	var text, settings []byte
	if file, ok := c.model.file.(*gguf.File); ok {
		for _, role := range []string{"bos", "eos"} {
			if id, ok := file.Int("tokenizer.ggml." + role + "_token_id"); ok {
				o.Config[role+"_token_id"] = id
			}
		}
		if _, ok := file.Text("tokenizer.ggml.model"); ok {
			var err error
			if text, settings, err = tokenizer.ToJSON(file); err != nil {
				return err
			}
		}
	} else if err := c.keep(&text, &settings, o.Config); err != nil {
		return err
	}
	config, tensors, err := lm.ToHF(c.model.Config, c.tensors, o)
	if err != nil {
		return err
	}
	entries := make([]safetensors.Entry, len(tensors))
	for i, e := range tensors {
		entries[i] = safetensors.Entry{Name: e.Name, DType: e.DType, Dims: e.Dims, Write: c.reporting(i, len(tensors), e.Name, e.Write)}
	}
	if _, err := os.Stat(c.to); errors.Is(err, os.ErrNotExist) {
		if err := os.Mkdir(c.to, 0o777); err != nil {
			return err
		}
		c.made = append(c.made, c.to)
	}
	for name, data := range map[string][]byte{"config.json": config, "tokenizer.json": text, "tokenizer_config.json": settings} {
		if data == nil {
			continue
		}
		err := c.create(filepath.Join(c.to, name), func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.create(filepath.Join(c.to, "model.safetensors"), func(w io.Writer) error {
		return safetensors.WriteEntries(w, entries, map[string]string{"format": "pt"})
	})
}

// keep reads the tokenizer of a folder, and the ids of special tokens in its config.json.
func (c *converting) keep(text, settings *[]byte, config map[string]any) (err error) {
	if c.model.Tokenizer != "" {
		if *text, err = os.ReadFile(c.model.Tokenizer); err != nil {
			return err
		}
	}
	*settings, err = os.ReadFile(filepath.Join(c.from, "tokenizer_config.json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	data, err := os.ReadFile(filepath.Join(c.from, "config.json"))
	if err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for _, key := range []string{"bos_token_id", "eos_token_id", "pad_token_id"} {
		if id, ok := all[key]; ok {
			config[key] = id
		}
	}
	return nil
}
