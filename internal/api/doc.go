// Package api prints the exported API of the module's packages, so that a change of it shows
// as a difference of a file. Packages below a folder named internal are not part of it, nor
// are commands and tests.
//
// Read first: api.go.
package api
