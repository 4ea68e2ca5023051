package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rlx-go/rlx/ir/format/gguf"
	"github.com/rlx-go/rlx/ir/format/npz"
	"github.com/rlx-go/rlx/native/safetensors"
)

// The formats of files with tensors and without a graph.
const (
	ggufFormat        = "GGUF"
	safetensorsFormat = "safetensors"
	npzFormat         = "npz"
)

// weightsFormat returns the format of a file of tensors by the ending of its name, "" for another one.
func weightsFormat(name string) string {
	switch {
	case strings.HasSuffix(name, ".gguf"):
		return ggufFormat
	case strings.HasSuffix(name, ".safetensors"), strings.HasSuffix(name, ".safetensors.index.json"):
		return safetensorsFormat
	case strings.HasSuffix(name, ".npz"):
		return npzFormat
	}
	return ""
}

// weightsView is the output of "show" for a file of tensors.
type weightsView struct {
	Format   string            `json:"format"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Tensors  []tensorRow       `json:"tensors"`
	Bytes    int64             `json:"bytes"`    // of all tensors
	Elements int64             `json:"elements"` // of all tensors
}

// tensorRow is a tensor of a file. Type is the format's name of the element type or the packed format.
type tensorRow struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Dims  []int  `json:"dims"`
	Bytes int64  `json:"bytes"`
}

// viewWeights reads the tables of a file of tensors, and none of its elements.
func viewWeights(name string) (v *weightsView, err error) {
	v = &weightsView{Format: weightsFormat(name), Metadata: map[string]string{}, Tensors: []tensorRow{}}
	switch v.Format {
	case ggufFormat:
		err = v.readGGUF(name)
	case safetensorsFormat:
		err = v.readSafetensors(name)
	default:
		err = v.readNPZ(name)
	}
	return v, err
}

func (v *weightsView) add(name, dtype string, dims []int, bytes int64) {
	elements := int64(1)
	for _, n := range dims {
		elements *= int64(n)
	}
	v.Tensors = append(v.Tensors, tensorRow{name, dtype, slices.Concat([]int{}, dims), bytes})
	v.Bytes, v.Elements = v.Bytes+bytes, v.Elements+elements
}

func (v *weightsView) readGGUF(name string) error {
	f, err := gguf.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, key := range f.Keys() {
		v.Metadata[key] = shortText(f.Value(key))
	}
	for _, tensor := range f.Names() {
		x, _ := f.Info(tensor)
		v.add(tensor, x.Type.String(), x.Dims, x.Bytes)
	}
	return nil
}

func (v *weightsView) readSafetensors(name string) error {
	f, err := safetensors.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for key, text := range f.Metadata() {
		v.Metadata[key] = shortText(text)
	}
	for _, tensor := range f.Names() {
		x, _ := f.Info(tensor)
		v.add(tensor, x.Type, x.Dims, x.Bytes)
	}
	return nil
}

func (v *weightsView) readNPZ(name string) error {
	f, err := npz.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, array := range slices.Sorted(slices.Values(f.Names())) {
		t, err := f.Type(array)
		if err != nil {
			return err
		}
		dims, _ := t.Shape.Ints() // a file has no symbols
		size, err := t.Bytes()
		if err != nil {
			return err
		}
		v.add(array, t.DType.String(), dims, int64(size))
	}
	return nil
}

// longest is the most characters of a value that are shown.
const longest = 60

// shortText returns a value of metadata on one line; of a list, such as a vocabulary, its beginning.
func shortText(x any) string {
	text := strings.Join(strings.Fields(fmt.Sprint(x)), " ")
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest]) + "…"
	}
	return text
}

// write writes the metadata and a line for each tensor.
func (v *weightsView) write(w io.Writer) error {
	fmt.Fprintf(w, "%s file: %d tensors, %d elements, %s\n", v.Format, len(v.Tensors), v.Elements, bytesText(v.Bytes))
	if len(v.Metadata) > 0 {
		fmt.Fprint(w, "\nmetadata\n")
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, key := range slices.Sorted(maps.Keys(v.Metadata)) {
			fmt.Fprintf(t, "  %s\t%s\n", key, v.Metadata[key])
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprint(w, "\ntensors\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, x := range v.Tensors {
		fmt.Fprintf(t, "  %s\t%s\t%v\t%s\n", x.Name, x.Type, x.Dims, bytesText(x.Bytes))
	}
	return t.Flush()
}

// refuseWeights returns an error that says what to do with a file of tensors, nil for another one.
func refuseWeights(name string, data []byte) error {
	format := ""
	switch {
	case bytes.HasPrefix(data, []byte("GGUF")):
		return fmt.Errorf("%s is a %s file, which has weights and no graph: it must be the text form of graphs or an ONNX model; \"rlx show\" lists its tensors, \"rlx generate\" continues a text with it", name, ggufFormat)
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		format = npzFormat
	case len(data) > 8 && data[8] == '{' && bytes.IndexByte(data[:8], 0) > 0:
		format = safetensorsFormat
	default:
		return nil
	}
	return fmt.Errorf("%s is a %s file, which has tensors and no graph: it must be the text form of graphs or an ONNX model; \"rlx show\" lists its tensors, and -weights takes them", name, format)
}
