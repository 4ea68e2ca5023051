// The examples of the playground: a file each in the folder examples.

/** @type {{name: string, title: string, file?: string}[]} in the order in which they are listed; a file has the example's name and .js if none is given */
export const examples = [
  { name: 'sine', title: 'A wave from noisy points' },
  { name: 'moons', title: 'Two moons: a line between them (TypeScript)', file: 'moons.ts' },
  { name: 'picture', title: 'A picture learned by heart' },
  { name: 'frames', title: 'A filter of moving pictures (TypeScript)', file: 'frames.ts' },
  { name: 'sort', title: 'A transformer that sorts' },
  { name: 'diffusion', title: 'Diffusion: a spiral out of noise' },
  { name: 'gan', title: 'A generative adversarial network' },
  { name: 'vae', title: 'A variational autoencoder' },
  { name: 'race', title: 'Optimisers race down a valley' },
  { name: 'pinn', title: 'A network that obeys physics' },
  { name: 'pole', title: 'A pole, balanced through physics' },
  { name: 'maze', title: 'Agents learn a maze' },
  { name: 'derivatives', title: 'Four derivatives of a function (TypeScript)', file: 'derivatives.ts' },
  { name: 'text', title: 'A line, as graph text', file: 'text.txt' },
  { name: 'mandelbrot', title: 'The Mandelbrot set' },
  { name: 'reaction', title: 'Patterns of a reaction' },
];

/** The source of an example. */
export async function sourceOf(name) {
  const refused = (why) => new Error(`The example ${name} cannot be loaded: ${why}`);
  const { file = `${name}.js` } = examples.find((one) => one.name === name);
  const response = await fetch(new URL(`examples/${file}`, import.meta.url)).catch(() => { throw refused('is the device offline? Choose it again once it is back.'); });
  if (!response.ok) throw refused(`the server answers ${response.status}. Choose it again.`);
  return response.text();
}
