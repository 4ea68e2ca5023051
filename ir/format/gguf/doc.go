// Package gguf reads and writes GGUF files, versions 2 and 3: metadata, and tensors, whose elements
// may be packed in blocks.
//
//	f, err := gguf.Open("model.gguf")
//	architecture, ok := f.Text("general.architecture")
//	x, err := f.Floats("output_norm.weight")
//
// [Open] maps the file, or the files of a split model. Tensors are windows of them ([File.Bytes]),
// which ops.Dequantize and ops.QuantizedMatMul accept under the name of the type, or floats
// ([File.Floats]). [Dequantize] supports the block types of Python's gguf package, with the same
// bits. The file to read first is file.go.
package gguf
