// Package mil is the Model Intermediate Language of Core ML: programs, the
// signatures of the operations that rlx emits, and model packages on disk.
//
// A [Builder] makes the functions of a [Program] and infers the type of every
// result by [signatures], the one table of what an operation takes and gives.
// [Package.Write] lays a model down as an .mlpackage: a manifest, the protocol
// buffer of the model, and a file of weights. [Read] reads one, and [Validate]
// holds every operation of it to the same table, so that what Core ML's
// compiler would refuse is refused with a place.
//
// The formats are those of Apple's public descriptions: Model.proto, MIL.proto
// and FeatureTypes.proto (apple/coremltools, mlmodel/format), and the layout of
// weight files as coremltools' reader has it. The numbers of fields stand in
// fields.go.
package mil
