// Package software implements Core ML in software, for tests.
//
// [Runtime] reads a model package and runs it on the CPU. [Graph] converts a function of an ML
// program to a graph of the ops of rlx; it shares no code with package forms, which converts the
// other way.
//
// On Linux [Install] builds the classes of Core ML that package driver uses, in Objective-C over
// GNUstep, together with the files of that package for Macs. This library runs functions by
// [Runtime], checks the order and the types of calls, pads the rows of outputs as devices do and
// counts objects.
//
// Neither models the behaviour of Apple's compiler beyond its documentation.
//
// Below it is package mil, which reads the package that native/coreml wrote. Start reading at runtime.go, then graph.go.
package software
