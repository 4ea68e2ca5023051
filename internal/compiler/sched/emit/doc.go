// Package emit has the types and the writer with which every family of algorithms lowers a group.
//
// A [Schedule] is a family of algorithms with its sizes, a [Space] the schedules of one group. An
// [Emitter] collects the pieces of a kernel (emit.go) and writes its body statement by statement
// (writer.go); a [Vectorizer] replaces its loads and stores by those of vectors (vector.go). The
// output is a [Launch]: a kernel in the loop IR, or a routine, with the tensors that it binds. A
// [Part] is work whose kernel is built once its tensors are placed (part.go). cost.go has what
// the cost estimates of several families share. Read schedule.go first.
package emit
