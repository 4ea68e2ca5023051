// Command sourcevet reports the findings of go vet for another system. It type-checks all packages
// from source, where go vet compiles the packages that they import. Environment variables choose
// the system:
//
//	GOOS=windows CGO_ENABLED=0 sourcevet ./...
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/suite/vet"
)

func main() { multichecker.Main(vet.Suite...) }
