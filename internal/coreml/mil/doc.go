// Package mil implements the Model Intermediate Language of Core ML: programs, the signatures of
// the operations that rlx emits, and model packages on disk.
//
// A [Builder] builds the functions of a [Program] and infers the type of every result from
// [signatures], the single table of operands and results. [Package.Write] writes a model as an
// .mlpackage: a manifest, the protocol buffer of the model, and a file of weights. [Read] reads
// one. [Validate] checks every operation against the same table, so that what Core ML's compiler
// would refuse is refused here, with its location.
//
// The formats are those of Apple's public descriptions: Model.proto, MIL.proto and
// FeatureTypes.proto (apple/coremltools, mlmodel/format), and the layout of weight files in
// coremltools' reader. fields.go has the field numbers.
package mil
