// Package gguf reads and writes GGUF files, versions 2 and 3: metadata, and tensors whose elements are
// packed in blocks.
//
//	f, err := gguf.Open("model.gguf")
//	architecture, ok := f.Text("general.architecture")
//	x, err := f.Floats("output_norm.weight")
//
// [Open] maps the file, or the files that a model is split into; tensors are windows of them ([File.Bytes]),
// which ops.Dequantize and ops.QuantizedMatMul take under the name of the type, or floats
// ([File.Floats]). [Dequantize] knows the block types that the gguf package of Python knows, and gives the
// same bits. The file to read first is file.go.
package gguf
