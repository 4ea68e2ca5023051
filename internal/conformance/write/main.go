// Command write compiles the conformance suite into a folder:
//
//	go run ./internal/conformance/write FOLDER
package main

import (
	"log"
	"os"

	"github.com/rlx-go/rlx/internal/conformance"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: write FOLDER")
	}
	modules, err := conformance.Suite()
	if err != nil {
		log.Fatal(err)
	}
	if err := conformance.Write(os.Args[1], modules); err != nil {
		log.Fatal(err)
	}
}
