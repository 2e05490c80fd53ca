// Writes a page of what is in a ledger.

// What it says, by language.
const WORDS = {
  de: { title: 'Bestellungen', free: 'geschenkt', each: 'je', of: 'davon' },
  en: { title: 'Orders', free: 'free', each: 'each', of: 'of which' },
};
const PIECE_BYTES = 1024; // written at a time

export const page = {
  write(ledger, language, to) {
    // What every object has by itself (`constructor`) is no language.
    const words = Object.hasOwn(WORDS, language ?? 'en') && WORDS[language ?? 'en'];
    if (!words) {
      to[Symbol.dispose]();
      throw `no words in ${language}`; // becomes the error of the result
    }
    let count = 0n;
    const say = (text) => {
      const bytes = new TextEncoder().encode(text);
      for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
        to.blockingWriteAndFlush(bytes.subarray(start, start + PIECE_BYTES));
      }
      count += BigInt(bytes.length);
    };
    say(`${words.title}: ${ledger.title()}\n`);
    for (const order of ledger.orders()) {
      say(`${order.count} ${order.item}, ${price(order.price, words)}${marks(order.marks)}${note(order.note)}\n`);
    }
    count += ledger.sign(to);
    // Each of these ledgers is ours.
    for (const part of ledger.split()) {
      say(`${words.of} ${part.title()}: `);
      count += part.sign(to);
      part[Symbol.dispose]();
    }
    const missing = ledger.find('nothing of that name');
    say(missing === undefined ? 'end\n' : 'found what is not there\n');
    to[Symbol.dispose]();
    return count;
  },
};

function price({ tag, val }, words) {
  switch (tag) {
    case 'free':
      return words.free;
    case 'cents':
      return `${words.each} ${val / 100n}.${String(val % 100n).padStart(2, '0')}`;
    case 'agreed':
      return `„${val}“`;
  }
}

function marks(set) {
  return Object.keys(set)
    .filter((mark) => set[mark])
    .map((mark) => ` [${mark}]`)
    .join('');
}

function note(text) {
  return text === undefined ? '' : ` (${text}, ${[...text].length} characters)`;
}
