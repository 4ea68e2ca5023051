// The pictures that the home page's network learns, drawn by hand of a program.

/** Fills a picture with a gradient from top to bottom. */
function fill(context, side, ...colors) {
  const gradient = context.createLinearGradient(0, 0, 0, side);
  colors.forEach((color, i) => gradient.addColorStop(i / (colors.length - 1), color));
  context.fillStyle = gradient;
  context.fillRect(0, 0, side, side);
}

function disc(context, x, y, radius, color) {
  context.fillStyle = color;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

function hill(context, side, height, waves, color) {
  context.fillStyle = color;
  context.beginPath();
  context.moveTo(0, side);
  for (let x = 0; x <= side; x += 4) context.lineTo(x, side * height + side * 0.08 * Math.sin(waves * x / side + 8 * height));
  context.lineTo(side, side);
  context.fill();
}

function evening(context, side) {
  fill(context, side, '#1d1147', '#7a2a7b', '#f2705d', '#ffd07a');
  disc(context, side * 0.64, side * 0.5, side * 0.15, '#fff1c2');
  hill(context, side, 0.66, 5, '#40265e');
  hill(context, side, 0.8, 8, '#23163f');
}

function flower(context, side) {
  fill(context, side, '#0d3b4f', '#14695c');
  for (let i = 0; i < 10; i++) {
    const angle = i * Math.PI / 5;
    disc(context, side * (0.5 + 0.25 * Math.cos(angle)), side * (0.5 + 0.25 * Math.sin(angle)), side * 0.13, i % 2 ? '#ff9fb2' : '#ff6f91');
  }
  disc(context, side / 2, side / 2, side * 0.17, '#ffd166');
}

function letters(context, side) {
  fill(context, side, '#fdf6e3', '#f3e3c3');
  Object.assign(context, { fillStyle: '#4338ca', textAlign: 'center', textBaseline: 'middle', font: `800 ${side * 0.5}px system-ui, sans-serif` });
  context.fillText('rlx', side / 2, side * 0.46);
  context.fillStyle = '#c2570c';
  context.fillRect(side * 0.14, side * 0.76, side * 0.72, side * 0.05);
}

/** @type {((context: CanvasRenderingContext2D, side: number) => void)[]} */
export const scenes = [evening, flower, letters];
