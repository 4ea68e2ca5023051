// Package onnx reads ONNX models of the operator sets 7 to 28 and builds their graphs, and writes graphs as models.
//
//	model, err := onnx.ReadFile("model.onnx")
//	imported, err := model.Import(onnx.Options{Sizes: map[string]int{"batch": 1}})
//	// imported.Graph has the model's inputs and outputs, and imported.Weights as parameters.
//
// The graph is an ordinary one: it can be differentiated and trained. The files to read first are
// import.go and table.go, which finds how an op is imported; the ops are in ops_*.go.
//
// # What is computed at import
//
// A graph has static or symbolic shapes, while ONNX computes shapes in the graph. So the importer
// evaluates nodes whose operands are known, and represents integers computed from shapes as
// polynomials of the symbols. An unknown value that determines a shape is a [NeedError], which
// names the inputs to fix by [Options.Values]. Functions are inlined, and only the taken branch of
// a known condition is imported. Loops become scans, while loops or unrolled nodes. Sequences and
// optionals exist only during import.
//
// # Element types
//
// Element types that graphs lack, of 2, 4 and 6 bits and some floats of 8, are stored in wider ones
// ([Element.DType]); casts to them round as ONNX specifies. Strings are refused. ONNX computes
// sizes in int64, which devices such as WebGPU lack: [Options.Narrow] uses i32 where values
// provably fit.
//
// # Export
//
//	model, err := onnx.Export(graph, onnx.ExportOptions{Weights: weights})
//	err = model.WriteFile("model.onnx", false)
//
// [Export] is in write.go and export_*.go, and what reads and writes files in files.go. A model has
// operator set 21. EXPORTED.md lists the samples that onnxruntime computes differently, and those
// that are refused.
//
// # Tests
//
// Of the node tests of the onnx package, NODES.md lists what fails, and why. Models of PyPI packages agree
// with onnxruntime to 1e-4: see suite/real.py.
package onnx
