// Values on hover, zoom, and series on and off. The drawings are whole without it.
'use strict';
(() => {
  const numbers = (text) => text.split(' ').map(Number);
  const tenth = (length) => Math.round(length * 10) / 10;
  const make = (parent, name, attributes, text) => {
    const element = document.createElementNS(parent.namespaceURI, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  };

  // An axis as the drawing describes it: base of the logarithm or 0, both ends, how labels are written.
  const axis = (text) => {
    const [base, low, high, labels] = text.split(' ');
    return { base: +base, low: +low, high: +high, labels };
  };

  const plain = (value) => {
    if (value === 0) return '0';
    const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value)) + 1));
    return value.toLocaleString('en', { maximumFractionDigits: Math.min(digits, 12) });
  };

  const written = (value, labels) => {
    if (labels === 'bytes') {
      const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
      let unit = 0;
      while (value >= 1024 && value % 1024 === 0 && unit < 4) { value /= 1024; unit += 1; }
      return `${value} ${units[unit]}`;
    }
    if (labels === 'si') {
      for (const [unit, name] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
        if (value >= 0.9995 * unit) return `${plain(value / unit)} ${name}`;
      }
    }
    return plain(value);
  };

  // The values to label between two places, at most `room` of them.
  const ticks = ({ base, labels }, low, high, room) => {
    const steps = () => {
      const [from, to] = base ? [base ** low, base ** high] : [low, high];
      const rough = (to - from) / room;
      const power = labels === 'bytes' ? 2 : 10;
      const decade = power ** Math.floor(Math.log(rough) / Math.log(power) + 1e-9);
      const factors = labels === 'bytes' ? [1, 2] : [1, 2, 5, 10];
      let step = factors.map((factor) => factor * decade).find((step) => step >= rough * 0.999);
      if (labels === 'bytes') step = Math.max(step, 1);
      const found = [];
      for (let n = Math.ceil(from / step); n * step <= to && found.length < 50; n += 1) {
        found.push(Number((n * step).toPrecision(12)));
      }
      return found;
    };
    if (!base) return steps();
    // A logarithmic axis of less than two labels is as good as linear.
    const exponents = [];
    for (let n = Math.ceil(low - 1e-9); n <= high; n += 1) exponents.push(n);
    if (exponents.length < 3) return steps();
    const stride = [1, 2, 5, 10].find((stride) => exponents.length / stride <= room) || 10;
    const factors = base === 10 && exponents.length * 4 <= room ? [1, 2, 5] : [1];
    return exponents.filter((n) => n % stride === 0).flatMap((n) => factors.map((factor) => factor * base ** n));
  };

  class Drawing {
    constructor(svg) {
      this.svg = svg;
      [this.left, this.top, this.width, this.height] = numbers(svg.dataset.frame);
      this.x = axis(svg.dataset.x);
      this.y = axis(svg.dataset.y);
      this.isLines = svg.dataset.kind === 'lines';
      this.series = [...svg.querySelectorAll('.data > .series')].map((group) => ({
        group,
        place: group.dataset.series,
        line: group.querySelector('.line path'),
        points: [...group.querySelectorAll('.point')].map((element) => {
          const [x, y, low, high] = numbers(element.dataset.at);
          return { element, x, y, low, high, bar: element.querySelector('.bar') };
        }),
      }));
      this.clip = svg.querySelector('clipPath rect');
      this.parts = ['grid', 'axes'].map((name) => svg.querySelector(`.${name}`));
      this.whole = this.parts.map((part) => [...part.childNodes]);
      this.reset();
    }

    // The part of the drawing that is shown, in its own pixels.
    reset() {
      this.view = [this.left, this.top, this.width, this.height];
      this.place();
      this.clipAt(6);
      this.parts.forEach((part, n) => part.replaceChildren(...this.whole[n]));
    }

    zoom(left, top, width, height) {
      const [x, y, w, h] = this.view;
      const [kx, ky] = [w / this.width, h / this.height];
      this.view = [x + (left - this.left) * kx, y + (top - this.top) * ky, width * kx, height * ky];
      this.place();
      this.clipAt(0);
      this.label();
    }

    // Markers reach over the frame of the whole plot; the lines of a part end there.
    clipAt(over) {
      if (!this.clip) return;
      const box = { x: this.left - over, y: this.top - over, width: this.width + 2 * over, height: this.height + 2 * over };
      for (const key in box) this.clip.setAttribute(key, box[key]);
    }

    at(x, y) {
      const [left, top, width, height] = this.view;
      return [this.left + (x - left) / width * this.width, this.top + (y - top) / height * this.height];
    }

    place() {
      const reference = this.svg.querySelector('.reference');
      if (reference && this.isLines) {
        const [, y] = this.at(0, +reference.dataset.at);
        const isInside = y >= this.top && y <= this.top + this.height;
        reference.setAttribute('d', isInside ? `M${this.left} ${tenth(y)}h${this.width}` : '');
      }
      for (const { points, line } of this.series) {
        for (const point of points) {
          const [x, y] = this.at(point.x, point.y);
          [point.nowX, point.nowY] = [x, y];
          if (!this.isLines) continue;
          const mark = point.element.querySelector('.mark');
          mark.setAttribute('transform', `translate(${tenth(x - point.x)} ${tenth(y - point.y)})`);
          const cap = tenth(x - 3.5);
          if (!point.bar) continue;
          const [[, low], [, high]] = [this.at(point.x, point.low), this.at(point.x, point.high)];
          point.bar.setAttribute('d', `M${cap} ${tenth(low)}h7M${tenth(x)} ${tenth(low)}V${tenth(high)}M${cap} ${tenth(high)}h7`);
        }
        if (line) line.setAttribute('d', 'M' + points.map((point) => `${tenth(point.nowX)} ${tenth(point.nowY)}`).join('L'));
      }
    }

    // New grid and labels for the part that is shown.
    label() {
      const [grid, axes] = this.parts;
      const { left, top, width, height } = this;
      grid.replaceChildren();
      axes.replaceChildren();
      const labels = make(axes, 'g', { class: 'labels' });
      make(labels, 'path', { d: `M${left} ${top}V${top + height}H${left + width}`, fill: 'none' });
      const part = (one, from, to) => one.low + (one.high - one.low) * (from / to);
      const span = (scale, from, to) => {
        const toPlace = (value) => (scale.base ? Math.log(value) / Math.log(scale.base) : value);
        return ticks(scale, from[0], from[1], to).map((value) => [(toPlace(value) - from[0]) / (from[1] - from[0]), written(value, scale.labels)]);
      };
      const [x, y, w, h] = this.view;
      const xs = [part(this.x, x - left, width), part(this.x, x + w - left, width)];
      const ys = [part(this.y, top + height - y - h, height), part(this.y, top + height - y, height)];
      for (const [at, text] of span(this.x, xs, width / 58)) {
        const place = tenth(left + at * width);
        make(grid, 'path', { d: `M${place} ${top}V${top + height}` });
        make(labels, 'path', { d: `M${place} ${top + height}v4` });
        make(labels, 'text', { x: place, y: top + height + 17, 'text-anchor': 'middle', stroke: 'none' }, text);
      }
      const beside = span(this.y, ys, height / 34).map(([at, text]) => {
        const place = tenth(top + (1 - at) * height);
        make(grid, 'path', { d: `M${left} ${place}H${left + width}` });
        make(labels, 'path', { d: `M${left} ${place}h-4` });
        return make(labels, 'text', { x: left - 8, y: place + 4.2, 'text-anchor': 'end', stroke: 'none' }, text);
      });
      // Numbers with many digits are smaller, so that they have room.
      const widest = Math.max(0, ...beside.map((text) => text.getComputedTextLength()));
      if (widest > left - 8) beside.forEach((text) => text.setAttribute('font-size', tenth(12 * (left - 8) / widest)));
    }

    // Where an event is, in the drawing's pixels.
    where(event) {
      const box = this.svg.getBoundingClientRect();
      const scale = this.svg.viewBox.baseVal.width / box.width;
      return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale, 1 / scale];
    }

    // The points of the nearest value of the variable, or the nearest row.
    nearest(x, y) {
      const shown = this.series.filter(({ group }) => !group.hasAttribute('display'));
      const inside = (point) => point.nowX >= this.left - 6 && point.nowX <= this.left + this.width + 6;
      const all = shown.flatMap((series) => series.points.filter(inside).map((point) => ({ series, point })));
      const far = ({ point }) => (this.isLines ? Math.abs(point.nowX - x) : Math.abs(point.nowY - y));
      const best = all.reduce((best, one) => (best && far(best) <= far(one) ? best : one), null);
      if (!best) return [];
      const same = this.isLines ? ({ point }) => point.x === best.point.x : (one) => one === best;
      return all.filter(same).sort((a, b) => a.point.nowY - b.point.nowY);
    }
  }

  class Figure {
    constructor(figure) {
      this.figure = figure;
      this.tip = figure.querySelector('.tip');
      this.back = figure.querySelector('.reset');
      this.buttons = [...figure.querySelectorAll('.key button')];
      this.drawings = [...figure.querySelectorAll('.drawing > svg')].map((svg) => new Drawing(svg));
      this.drawings.forEach((drawing) => this.listen(drawing));
      this.back.addEventListener('click', () => this.reset());
      this.buttons.forEach((button) => {
        button.title = 'Click: on or off. Double click: alone.';
        button.addEventListener('click', () => this.toggle(button));
        button.addEventListener('dblclick', () => this.alone(button));
      });
    }

    reset() {
      this.drawings.forEach((drawing) => drawing.reset());
      this.back.hidden = true;
    }

    toggle(button) {
      this.show(button, button.getAttribute('aria-pressed') !== 'true');
    }

    // All others off; all on where they are off already.
    alone(button) {
      const others = this.buttons.filter((other) => other !== button);
      const isAlone = others.every((other) => other.getAttribute('aria-pressed') !== 'true');
      this.show(button, true);
      others.forEach((other) => this.show(other, isAlone));
    }

    show(button, isOn) {
      button.setAttribute('aria-pressed', String(isOn));
      for (const { series } of this.drawings) {
        const { group } = series.find(({ place }) => place === button.dataset.series);
        if (isOn) group.removeAttribute('display');
        else group.setAttribute('display', 'none');
      }
      this.leave();
    }

    leave() {
      this.tip.hidden = true;
      this.figure.querySelectorAll('.hot').forEach((point) => point.classList.remove('hot'));
      this.figure.querySelectorAll('.cross').forEach((line) => line.remove());
    }

    hover(drawing, event) {
      const [x, y, scale] = drawing.where(event);
      this.leave();
      const { left, top, width, height } = drawing;
      if (x < left - 8 || x > left + width + 8 || y < top - 8 || y > top + height + 8) return;
      const found = drawing.nearest(x, y);
      if (!found.length) return;
      found.forEach(({ point }) => point.element.classList.add('hot'));
      const at = found[0].point.nowX;
      if (drawing.isLines) make(drawing.svg, 'path', { class: 'cross', d: `M${at} ${top}V${top + height}` });
      this.tell(found);
      this.tip.hidden = false;
      const room = drawing.svg.getBoundingClientRect().width - this.tip.offsetWidth;
      const beside = at * scale + 14;
      this.tip.style.left = `${Math.max(0, Math.min(beside <= room ? beside : at * scale - this.tip.offsetWidth - 14, room))}px`;
      this.tip.style.top = `${top * scale + 4}px`;
    }

    tell(found) {
      const add = (parent, name, text) => {
        const element = document.createElement(name);
        element.textContent = text;
        return parent.appendChild(element);
      };
      this.tip.replaceChildren();
      add(this.tip, 'b', found[0].point.element.dataset.x);
      for (const { series, point } of found) {
        const { value, of } = point.element.dataset;
        const line = add(this.tip, 'p', '');
        add(line, 'i', '').style.background = getComputedStyle(series.group).color;
        const button = this.buttons.find((button) => button.dataset.series === series.place);
        add(line, 'span', button ? button.textContent : series.group.querySelector('.names').textContent);
        add(line, 'b', value);
        add(line, 'small', of);
      }
    }

    listen(drawing) {
      const { svg } = drawing;
      let start = null;
      let box = null;
      const clamp = (value, low, size) => Math.max(low, Math.min(value, low + size));
      const corner = (event) => {
        const [x, y] = drawing.where(event);
        return [clamp(x, drawing.left, drawing.width), clamp(y, drawing.top, drawing.height)];
      };
      // What was dragged over; all of the height where that is little.
      const chosen = (event) => {
        const [x, y] = corner(event);
        const [left, width] = [Math.min(x, start[0]), Math.abs(x - start[0])];
        const height = Math.abs(y - start[1]);
        return height < 20 ? [left, drawing.top, width, drawing.height] : [left, Math.min(y, start[1]), width, height];
      };
      const end = () => {
        if (box) box.remove();
        [start, box] = [null, null];
      };
      svg.addEventListener('pointerdown', (event) => {
        if (!drawing.isLines || event.button !== 0) return;
        start = corner(event);
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener('pointermove', (event) => {
        if (!start) {
          this.hover(drawing, event);
          return;
        }
        const [x, y, width, height] = chosen(event);
        if (width < 8) return;
        this.leave();
        if (!box) box = make(svg, 'rect', { class: 'selection' });
        for (const [key, value] of Object.entries({ x, y, width, height })) box.setAttribute(key, value);
      });
      svg.addEventListener('pointerup', (event) => {
        if (start && box) {
          const view = chosen(event);
          if (view[2] >= 8) {
            drawing.zoom(...view);
            this.back.hidden = false;
          }
        }
        end();
        if (event.pointerType !== 'mouse') this.hover(drawing, event);
      });
      svg.addEventListener('pointercancel', end);
      svg.addEventListener('pointerleave', () => this.leave());
      svg.addEventListener('dblclick', () => this.reset());
    }
  }

  document.querySelectorAll('figure.plot').forEach((figure) => new Figure(figure));

  // On paper all is open.
  let opened = [];
  window.addEventListener('beforeprint', () => {
    opened = [...document.querySelectorAll('details:not([open])')];
    opened.forEach((details) => { details.open = true; });
  });
  window.addEventListener('afterprint', () => opened.forEach((details) => { details.open = false; }));
})();
