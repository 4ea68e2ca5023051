package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/rlx-go/rlx/ir"
)

// headerLength returns the bytes of the header, after the first 8, of a file of some size. Files of other formats are errors with
// what reads or replaces them.
func headerLength(first []byte, size int64) (int64, error) {
	if len(first) < 8 {
		return 0, damaged("the file has %d bytes; a header needs 8", size)
	}
	n := binary.LittleEndian.Uint64(first)
	if n <= maxHeader && n <= uint64(size-8) {
		return int64(n), nil
	}
	switch {
	case bytes.HasPrefix(first, []byte("PK\x03\x04")), bytes.HasPrefix(first, []byte{0x80, 2}):
		return 0, damaged("this is a file of torch.save or of NumPy; write safetensors.torch.save_file(model.state_dict(), name)")
	case bytes.HasPrefix(first, []byte("GGUF")):
		return 0, damaged("this is a GGUF file, which package gguf reads")
	}
	return 0, damaged("the header has %d bytes; the file has %d", n, size)
}

// header is the parsed header of a file.
type header struct {
	tensors  []tensorInfo
	metadata map[string]string
}

// tensorInfo is the name, type and location of a tensor in the bytes after the header.
type tensorInfo struct {
	name     string
	typeName string   // of the element type in the format
	dtype    ir.DType // invalid if tensors have no such type
	dims     []int
	from, to int64
}

// dtypes maps the format's names of element types.
var dtypes = func() map[string]ir.DType {
	out := map[string]ir.DType{}
	for d, name := range names {
		out[name] = d
	}
	return out
}()

// parser reads the header token by token. Decoding into structs would accept headers that
// readers interpret differently: with duplicate or missing keys, keys that differ in case,
// or lists of the wrong length.
type parser struct{ *json.Decoder }

func parseHeader(text []byte) (*header, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("not UTF-8")
	}
	p := parser{json.NewDecoder(bytes.NewReader(text))}
	p.UseNumber()
	h := &header{}
	err := p.object(func(name string) (err error) {
		if name == metadataKey {
			h.metadata, err = p.texts()
			return err
		}
		at, err := p.tensor(name)
		h.tensors = append(h.tensors, at)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := p.Token(); err != io.EOF {
		return nil, fmt.Errorf("text follows the object")
	}
	return h, nil
}

func (p parser) begin(with json.Delim, what string) error {
	t, err := p.Token()
	if err == nil && t != with {
		err = fmt.Errorf("%v is not %s", t, what)
	}
	return err
}

// object reads an object without duplicate keys; value reads the value of a key.
func (p parser) object(value func(key string) error) error {
	if err := p.begin('{', "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.More() {
		t, err := p.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string) // a key is a string, or Token fails
		if seen[key] {
			return fmt.Errorf("key %q is repeated", key)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
	}
	_, err := p.Token()
	return err
}

// tensor reads the description of a tensor.
func (p parser) tensor(name string) (tensorInfo, error) {
	at := tensorInfo{name: name, dims: []int{}}
	var given struct{ dtype, shape, offsets bool }
	err := p.object(func(key string) (err error) {
		switch key {
		case "dtype":
			given.dtype = true
			at.typeName, err = p.text()
			at.dtype = dtypes[at.typeName]
		case "shape":
			given.shape = true
			at.dims, err = p.sizes(at.dims, maxRank)
		case "data_offsets":
			given.offsets = true
			at.from, at.to, err = p.offsets()
		default:
			err = fmt.Errorf("unknown key of a tensor: have dtype, shape and data_offsets")
		}
		return err
	})
	if err == nil && !(given.dtype && given.shape && given.offsets) {
		err = fmt.Errorf("a tensor needs dtype, shape and data_offsets")
	}
	return at, err
}

func (p parser) text() (string, error) {
	t, err := p.Token()
	s, ok := t.(string)
	if err == nil && !ok {
		err = fmt.Errorf("%v is not a string", t)
	}
	return s, err
}

func (p parser) texts() (map[string]string, error) {
	out := map[string]string{}
	err := p.object(func(key string) (err error) {
		out[key], err = p.text()
		return err
	})
	return out, err
}

func (p parser) offsets() (from, to int64, err error) {
	list, err := p.numbers(nil, 2, 63)
	if err != nil {
		return 0, 0, err
	}
	if len(list) != 2 {
		return 0, 0, fmt.Errorf("%d offsets; want 2", len(list))
	}
	return list[0], list[1], nil
}

// sizes appends a list of at most limit sizes.
func (p parser) sizes(out []int, limit int) ([]int, error) {
	list, err := p.numbers(nil, limit, strconv.IntSize-1)
	for _, n := range list {
		out = append(out, int(n))
	}
	return out, err
}

// numbers appends a list of at most limit integers from 0, of some bits.
func (p parser) numbers(out []int64, limit, bits int) ([]int64, error) {
	if err := p.begin('[', "a list"); err != nil {
		return nil, err
	}
	for p.More() {
		if len(out) == limit {
			return nil, fmt.Errorf("the list has more than %d numbers", limit)
		}
		t, err := p.Token()
		if err != nil {
			return nil, err
		}
		text, _ := t.(json.Number)
		n, err := strconv.ParseUint(text.String(), 10, bits)
		if err != nil {
			return nil, fmt.Errorf("%v is not a size", t)
		}
		out = append(out, int64(n))
	}
	_, err := p.Token()
	return out, err
}
