// A program that runs as it is imports this last: it is evaluated before the program, once all of that could be read.

globalThis.programBegun = true;
